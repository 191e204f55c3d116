//! The two rules for zeros.

/// The rule that decides whether `0.0` and `-0.0` are the same term.
///
/// Before OTP 27 `0.0 =:= -0.0` is true; since OTP 27 it is false and both may be keys of one map,
/// `-0.0` first. `0.0 == -0.0` is true in all releases. A table must follow the virtual machine it
/// runs in, so code that makes keys takes the rule as an option.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Zeros {
    /// `0.0 =:= -0.0`, as before OTP 27.
    Same,
    /// `0.0 =/= -0.0`, as since OTP 27.
    #[default]
    Distinct,
}
