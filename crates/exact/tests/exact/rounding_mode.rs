use gristmill_exact::check_rounding_mode;

#[test]
fn a_fresh_thread_rounds_to_nearest() {
    assert_eq!(check_rounding_mode(), Ok(()));
}

#[cfg(target_arch = "x86_64")]
mod changed {
    //! The check after changes that C or Fortran code in the same thread could make.
    #![allow(unsafe_code)]

    use std::arch::asm;

    use gristmill_exact::{RoundingModeError, check_rounding_mode};

    /// Runs the check under the control word `default | bits`.
    fn check_with(bits: u32) -> Result<(), RoundingModeError> {
        let mut saved = 0u32;
        // SAFETY: it stores four bytes to a local variable.
        unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut saved) };
        let changed = saved | bits;
        // SAFETY: it sets only rounding and subnormal bits and unmasks no exception. It is undone below. The code in
        // between computes with values that the compiler cannot see.
        unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const changed) };
        let answer = check_rounding_mode();
        // SAFETY: it restores the word that was stored above.
        unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const saved) };
        answer
    }

    #[test]
    fn every_other_mode_is_named() {
        assert_eq!(check_with(0), Ok(()));
        assert_eq!(check_with(0x2000), Err(RoundingModeError::NotNearest), "down");
        assert_eq!(check_with(0x4000), Err(RoundingModeError::NotNearest), "up");
        assert_eq!(check_with(0x6000), Err(RoundingModeError::NotNearest), "towards zero");
        assert_eq!(check_with(0x8000), Err(RoundingModeError::FlushToZero));
        assert_eq!(check_with(0x0040), Err(RoundingModeError::DenormalsAreZero));
        assert_eq!(check_with(0x8040), Err(RoundingModeError::FlushToZero));
        assert_eq!(check_rounding_mode(), Ok(()));
    }
}
