//! Messages of Flight, as `Flight.proto` of the Arrow project defines them. Fields that Gristmill neither sends nor reads are
//! left out; decoding ignores them.

use bytes::Bytes;

/// A message without fields.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Empty {}

/// Selection of the flights to list.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Criteria {
    /// Expression whose meaning the service defines.
    #[prost(bytes = "bytes", tag = "1")]
    pub expression: Bytes,
}

/// An action that the service supports.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ActionType {
    /// Name of the action.
    #[prost(string, tag = "1")]
    pub r#type: String,
    /// A sentence for humans.
    #[prost(string, tag = "2")]
    pub description: String,
}

/// A request to do an action.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Action {
    /// Name of the action.
    #[prost(string, tag = "1")]
    pub r#type: String,
    /// Request whose format the action defines.
    #[prost(bytes = "bytes", tag = "2")]
    pub body: Bytes,
}

/// An answer of an action. `Flight.proto` calls it `Result`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ActionResult {
    /// Answer whose format the action defines.
    #[prost(bytes = "bytes", tag = "1")]
    pub body: Bytes,
}

/// Kind of a [`FlightDescriptor`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum DescriptorType {
    /// Neither of the others.
    Unknown = 0,
    /// A name.
    Path = 1,
    /// A command whose format the service defines.
    Cmd = 2,
}

/// Name of a flight, or a command that makes one.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct FlightDescriptor {
    /// Kind: a [`DescriptorType`].
    #[prost(enumeration = "DescriptorType", tag = "1")]
    pub r#type: i32,
    /// The command, if it is one.
    #[prost(bytes = "bytes", tag = "2")]
    pub cmd: Bytes,
    /// The parts of the name, if it is one.
    #[prost(string, repeated, tag = "3")]
    pub path: Vec<String>,
}

impl FlightDescriptor {
    /// A name of these parts.
    #[must_use]
    pub fn of_path(path: Vec<String>) -> FlightDescriptor {
        FlightDescriptor { r#type: DescriptorType::Path.into(), path, ..FlightDescriptor::default() }
    }
}

/// Token that names a stream of data.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Ticket {
    /// Request whose format the service defines.
    #[prost(bytes = "bytes", tag = "1")]
    pub ticket: Bytes,
}

/// Address of a service.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Location {
    /// The address as a URI.
    #[prost(string, tag = "1")]
    pub uri: String,
}

/// A part of a flight, and where to get it.
#[derive(Clone, PartialEq, prost::Message)]
pub struct FlightEndpoint {
    /// Token for `DoGet`.
    #[prost(message, optional, tag = "1")]
    pub ticket: Option<Ticket>,
    /// Services that have the part. Without any it is the service that was asked.
    #[prost(message, repeated, tag = "2")]
    pub location: Vec<Location>,
}

/// Description of a flight.
#[derive(Clone, PartialEq, prost::Message)]
pub struct FlightInfo {
    /// Schema in the IPC format. Empty if it is not known.
    #[prost(bytes = "bytes", tag = "1")]
    pub schema: Bytes,
    /// Its name.
    #[prost(message, optional, tag = "2")]
    pub flight_descriptor: Option<FlightDescriptor>,
    /// Its parts.
    #[prost(message, repeated, tag = "3")]
    pub endpoint: Vec<FlightEndpoint>,
    /// Number of records, or -1 if it is not known.
    #[prost(int64, tag = "4")]
    pub total_records: i64,
    /// Length in bytes, or -1 if it is not known.
    #[prost(int64, tag = "5")]
    pub total_bytes: i64,
    /// Whether the parts are in the order of their data.
    #[prost(bool, tag = "6")]
    pub ordered: bool,
    /// Data of the application.
    #[prost(bytes = "bytes", tag = "7")]
    pub app_metadata: Bytes,
}

impl FlightInfo {
    /// A flight with this name and no parts, of which neither the schema nor the length is known.
    #[must_use]
    pub fn of(descriptor: FlightDescriptor) -> FlightInfo {
        let flight_descriptor = Some(descriptor);
        FlightInfo { flight_descriptor, total_records: -1, total_bytes: -1, ..FlightInfo::default() }
    }
}

/// A message of a stream of data.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct FlightData {
    /// Name of the flight, in the first message of a client that sends data.
    #[prost(message, optional, tag = "1")]
    pub flight_descriptor: Option<FlightDescriptor>,
    /// Header in the IPC format: the flatbuffer `Message`.
    #[prost(bytes = "bytes", tag = "2")]
    pub data_header: Bytes,
    /// Data of the application.
    #[prost(bytes = "bytes", tag = "3")]
    pub app_metadata: Bytes,
    /// Buffers of the columns in the IPC format.
    #[prost(bytes = "bytes", tag = "1000")]
    pub data_body: Bytes,
}

impl FlightData {
    /// A message with data of the application only.
    #[must_use]
    pub fn of_metadata(app_metadata: impl Into<Bytes>) -> FlightData {
        FlightData { app_metadata: app_metadata.into(), ..FlightData::default() }
    }
}
