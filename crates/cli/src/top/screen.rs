//! The picture on a terminal of any size, and the effect of keys.

use std::time::Duration;

use gristmill_wire::ClusterStatus;
use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::Style;
use ratatui::text::{Line, Text};

use super::changes::Changes;
use super::picture::{Picture, Sort};
use super::rows::clean;
use super::table::fit;

const HELP: [&str; 16] = [
    "",
    "q, Esc, Ctrl-C        end",
    "arrows, PgUp, PgDn    scroll; Home: to the beginning",
    "s                     next order of the nodes",
    "h, ?                  this text, or back",
    "",
    "not moved   bytes that active requests read where they are stored",
    "moved       bytes sent to clients and other nodes, in answers and plain reads",
    "PROCESSORS  █ active requests  ▒ everything else",
    "CORES       processors that active requests may use now",
    "QUEUE       seconds until these have done the active work",
    "MEM, I/O    share of memory in use; share of ten seconds in which I/O was awaited",
    "WHERE       at a node; or at the asker (the client), if its node just handed it back",
    "PARTS ENDED parts of requests that ended; a request has one on each of its nodes",
    "",
    "All counters begin at the start of each node.",
];

/// The effect of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOutcome {
    Continue,
    Quit,
}

/// The state of the screen: the picture, its order and its scroll position.
pub struct Screen {
    entry: String,
    cluster: ClusterStatus,
    changes: Changes,
    sort: Sort,
    help: bool,
    /// Number of lines above the visible part of the body.
    offset: usize,
    /// Number of lines of the body, and of its visible part, when it was last drawn.
    drawn: (usize, usize),
    /// Why the last request was not answered, and the time since the last answer.
    silent: Option<(String, Duration)>,
}

impl Screen {
    /// Makes the screen of the cluster of this entry node, with its first answer.
    pub fn new(entry: &str, first: ClusterStatus) -> Screen {
        let mut changes = Changes::default();
        changes.update(&first);
        Screen {
            entry: entry.to_owned(),
            cluster: first,
            changes,
            sort: Sort::default(),
            help: false,
            offset: 0,
            drawn: (0, 0),
            silent: None,
        }
    }

    /// Takes a later answer.
    pub fn update(&mut self, cluster: ClusterStatus) {
        self.changes.update(&cluster);
        (self.cluster, self.silent) = (cluster, None);
    }

    /// Notes that there was no answer: why, and the time since the last one.
    pub fn no_answer(&mut self, why: &str, since: Duration) {
        self.silent = Some((why.split_whitespace().collect::<Vec<_>>().join(" "), since));
    }

    /// Handles a key.
    pub fn key(&mut self, key: KeyEvent) -> KeyOutcome {
        let page = self.drawn.1.max(1);
        match key.code {
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return KeyOutcome::Quit,
            KeyCode::Char('q') | KeyCode::Esc => return KeyOutcome::Quit,
            KeyCode::Char('h' | '?') => {
                self.help = !self.help;
                self.offset = 0;
            }
            KeyCode::Char('s') => self.sort = self.sort.next(),
            KeyCode::Down => self.offset = self.offset.saturating_add(1),
            KeyCode::Up => self.offset = self.offset.saturating_sub(1),
            KeyCode::PageDown => self.offset = self.offset.saturating_add(page),
            KeyCode::PageUp => self.offset = self.offset.saturating_sub(page),
            KeyCode::Home => self.offset = 0,
            KeyCode::End => self.offset = usize::MAX,
            _ => {}
        }
        KeyOutcome::Continue
    }

    /// Draws the screen.
    pub fn draw(&mut self, frame: &mut Frame<'_>) {
        let area = frame.area();
        let width = usize::from(area.width);
        let picture = Picture::new(&self.entry, &self.cluster, &self.changes, self.sort);
        let mut head = picture.head(area.width);
        if let Some((why, since)) = &self.silent {
            let text = format!("no answer for {} s: {}", since.as_secs(), clean(why));
            head.push(Line::styled(fit(&text, width), Style::new().red().bold()));
        }
        let body: Vec<Line<'static>> = match self.help {
            true => HELP.iter().map(|line| Line::from(fit(line, width))).collect(),
            false => picture.body(area.width),
        };
        let rows = u16::try_from(head.len()).unwrap_or(u16::MAX);
        let parts = Layout::vertical([Constraint::Max(rows), Constraint::Fill(1), Constraint::Max(1)]);
        // On a small terminal a line of the picture is worth more than the line of keys.
        let parts = if area.height > rows.saturating_add(2) {
            parts.areas(area)
        } else {
            Layout::vertical([Constraint::Max(rows), Constraint::Fill(1), Constraint::Length(0)]).areas(area)
        };
        let [top, middle, bottom] = parts;
        let room = usize::from(middle.height);
        self.offset = self.offset.min(body.len().saturating_sub(room));
        self.drawn = (body.len(), room);
        let visible: Vec<Line<'static>> = body.into_iter().skip(self.offset).take(room).collect();
        frame.render_widget(Text::from(head), top);
        frame.render_widget(Text::from(visible), middle);
        frame.render_widget(Line::styled(fit(&self.keys(), width), Style::new().dim()), bottom);
    }

    fn keys(&self) -> String {
        let (all, room) = self.drawn;
        let below = all.saturating_sub(self.offset + room);
        let more = match below {
            0 => String::new(),
            _ => format!("  {below} more below"),
        };
        format!("q end  h help  s order: {}  ↑↓ scroll{more}", self.sort.name())
    }
}
