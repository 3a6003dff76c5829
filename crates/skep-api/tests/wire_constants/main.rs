//! The wire constants, spelled out a second time from the specifications: whoever changes, adds or drops one has to
//! say so here as well.

mod conditions;
mod environment;
mod events;
mod metadata;

pub(crate) fn sorted(list: &[&'static str]) -> Vec<&'static str> {
    let mut sorted = list.to_vec();
    sorted.sort_unstable();
    sorted
}

/// Every constant of a module beside its value, and nothing else in its `ALL`.
macro_rules! pinned {
    ($($module:ident)::+ { $($name:ident = $value:literal,)+ }) => {{
        use $($module)::+ as list;
        $(assert_eq!(list::$name, $value, stringify!($name));)+
        assert_eq!($crate::sorted(list::ALL), $crate::sorted(&[$($value),+]));
    }};
}

pub(crate) use pinned;
