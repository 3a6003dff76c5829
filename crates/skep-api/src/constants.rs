//! Lists of wire constants that cannot forget a member.

/// Declares string constants and `ALL`, which lists every one of them in the order of declaration.
///
/// The entries are written as ordinary constants, so that a search for `pub const READY` finds them.
macro_rules! constants {
    ($($(#[$meta:meta])* pub const $name:ident: &str = $value:expr;)+) => {
        $($(#[$meta])* pub const $name: &str = $value;)+

        /// Every constant of this list, in the order of declaration.
        pub const ALL: &[&str] = &[$($name),+];
    };
}
pub(crate) use constants;
