//! The sets of instructions that the inner loops are compiled for, and the calls that need proof of them.
//!
//! The loops do exact arithmetic, so every path gives the same bits. Paths differ only in speed.
#![allow(unsafe_code)]

use crate::vector::Vector;

/// A set of instructions that this processor has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Path {
    /// The instructions that every processor of the target has.
    Portable(Portable),
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
}

/// The path without special instructions, which needs no proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Portable;

/// Proof that the processor has AVX2 and FMA. Only `Path::available` makes it.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Avx2(());

/// Proof that the processor has AVX-512 F, BW, DQ and VL as well as AVX2 and FMA. Only `Path::available` makes it.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Avx512(());

/// A loop that is compiled once for each path.
pub(crate) trait Work {
    type Out;
    /// Runs the loop. Implementations are `#[inline(always)]`: only then are they compiled for the path.
    fn run<V: Vector>(self, vector: V) -> Self::Out;
}

impl Path {
    pub(crate) const PORTABLE: Path = Path::Portable(Portable);

    /// Every path that this processor has, the fastest last.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn available() -> impl Iterator<Item = Path> {
        let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
        let avx512 = avx2
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl");
        [
            Some(Path::PORTABLE),
            avx2.then_some(Path::Avx2(Avx2(()))),
            avx512.then_some(Path::Avx512(Avx512(()))),
        ]
        .into_iter()
        .flatten()
    }

    #[cfg(not(target_arch = "x86_64"))]
    pub(crate) fn available() -> impl Iterator<Item = Path> {
        std::iter::once(Path::PORTABLE)
    }

    /// The fastest path that this processor has.
    pub(crate) fn best() -> Path {
        static BEST: std::sync::OnceLock<Path> = std::sync::OnceLock::new();
        *BEST.get_or_init(|| Path::available().last().unwrap_or(Path::PORTABLE))
    }

    #[inline]
    pub(crate) fn run<W: Work>(self, work: W) -> W::Out {
        match self {
            Path::Portable(portable) => work.run(portable),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: an `Avx2` exists only where `available` found AVX2 and FMA.
            Path::Avx2(proof) => unsafe { with_avx2(work, proof) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: an `Avx512` exists only where `available` found every feature named below.
            Path::Avx512(proof) => unsafe { with_avx512(work, proof) },
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn with_avx2<W: Work>(work: W, proof: Avx2) -> W::Out {
    work.run(proof)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
fn with_avx512<W: Work>(work: W, proof: Avx512) -> W::Out {
    work.run(proof)
}
