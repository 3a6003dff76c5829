//! Media for answers that carry some.

/// An image of one pixel, in base64.
pub(crate) const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4upkRAARKAaq6b7ODAAAAAElFTkSuQmCC";

/// A millisecond of silence, in base64.
pub(crate) const WAV: &str = "UklGRiwAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQgAAACAgICAgICAgA==";
