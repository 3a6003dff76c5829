//! Which trace a request belongs to, as the W3C writes it down.

use http::{HeaderMap, HeaderName};

use crate::random;

pub(super) const TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");
pub(super) const TRACE_STATE: HeaderName = HeaderName::from_static("tracestate");

/// How long a step is in writing, and what stands between its parts.
const TEXT: usize = 55;
const EMPTY: &[u8; TEXT] = b"00-                                -                -  ";
/// The bit of a step that is recorded.
const SAMPLED: u8 = 1;
/// So long is what those who trace may say to each other. The rule asks for 512 bytes at least.
const STATE: usize = 4096;

/// A step of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Context {
    pub(super) trace: [u8; 16],
    pub(super) span: [u8; 8],
    pub(super) is_sampled: bool,
}

impl Context {
    /// Reads a `traceparent`; nothing when it is none.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (version, rest) = text.trim().split_once('-')?;
        let is_known = version == "00";
        if version.len() != 2 || version == "ff" || !is_lower_hex(version) {
            return None;
        }
        let mut parts = rest.splitn(4, '-');
        let (trace, span, flags, more) = (parts.next()?, parts.next()?, parts.next()?, parts.next());
        if (is_known && more.is_some()) || !is_lower_hex(trace) || !is_lower_hex(span) || !is_lower_hex(flags) {
            return None;
        }
        let (mut context, mut bits) = (Self { trace: [0; 16], span: [0; 8], is_sampled: false }, [0]);
        hex::decode_to_slice(trace, &mut context.trace).ok()?;
        hex::decode_to_slice(span, &mut context.span).ok()?;
        hex::decode_to_slice(flags, &mut bits).ok()?;
        context.is_sampled = bits[0] & SAMPLED != 0;
        (context.trace != [0; 16] && context.span != [0; 8]).then_some(context)
    }

    /// A step below another one, or the first one of a trace. `share` says how many of the latter are recorded.
    pub(super) fn below(parent: Option<Self>, share: f64) -> Self {
        let (trace, span) = fresh();
        let Some(Self { trace, is_sampled, .. }) = parent else {
            return Self { trace, span, is_sampled: is_chosen(trace, share) };
        };
        Self { trace, span, is_sampled }
    }

    /// As it is written in `traceparent`.
    pub(super) fn text(&self) -> [u8; TEXT] {
        let mut text = *EMPTY;
        // The places are as long as what is written there, twice.
        let _ = hex::encode_to_slice(self.trace, &mut text[3..35]);
        let _ = hex::encode_to_slice(self.span, &mut text[36..52]);
        let _ = hex::encode_to_slice([u8::from(self.is_sampled)], &mut text[53..]);
        text
    }
}

fn is_lower_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// Random numbers of a trace and of a step, neither of them zero.
fn fresh() -> ([u8; 16], [u8; 8]) {
    let (mut trace, mut span) = (random::bytes::<16>(), random::bytes::<8>());
    trace[15] = trace[15].max(1);
    span[7] = span[7].max(1);
    (trace, span)
}

/// Whether a trace is recorded: by its number, so that everybody on its way decides the same.
#[expect(clippy::cast_precision_loss, reason = "a share needs no more than 53 bits")]
fn is_chosen(trace: [u8; 16], share: f64) -> bool {
    let last = trace.last_chunk().copied().unwrap_or_default();
    let number = u64::from_be_bytes(last) >> 1;
    (number as f64) < share * (1_u64 << 63) as f64
}

/// The step that headers name, and what goes with it. Two of them are none.
pub(super) fn of_headers(headers: &HeaderMap) -> Option<(Context, String)> {
    let mut parents = headers.get_all(TRACE_PARENT).iter();
    let parent = parents.next().filter(|_| parents.next().is_none())?;
    let context = Context::parse(parent.to_str().ok()?)?;
    let states: Vec<_> = headers.get_all(TRACE_STATE).iter().filter_map(|value| value.to_str().ok()).collect();
    Some((context, state(&states.join(","))))
}

/// What those who trace say to each other; nothing when it is too long to be true.
pub(super) fn state(text: &str) -> String {
    let is_usable = text.len() <= STATE && text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    if is_usable { text.trim().to_owned() } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_step_is_read_and_written_as_the_w3c_says() {
        let context = Context::parse(PARENT).unwrap();
        assert!(context.is_sampled);
        assert_eq!(context.text(), PARENT.as_bytes());
        let more = PARENT.replacen("00", "cc", 1) + "-what-comes-later";
        assert_eq!(Context::parse(&more), Some(context));
        for wrong in [
            "",
            "00",
            &PARENT.to_uppercase(),
            &PARENT.replacen("00", "ff", 1),
            &format!("{PARENT}-more"),
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0af7651916cd43dd8448eb211c80319-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1",
        ] {
            assert_eq!(Context::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_step_below_another_one_does_as_that_one_does() {
        let parent = Context::parse(PARENT).unwrap();
        let child = Context::below(Some(parent), 0.0);
        assert_eq!((child.trace, child.is_sampled), (parent.trace, true));
        assert_ne!(child.span, parent.span);
        let silent = Context { is_sampled: false, ..parent };
        assert!(!Context::below(Some(silent), 1.0).is_sampled);
    }

    #[test]
    fn a_share_of_all_traces_is_recorded() {
        let recorded = |share: f64| (0..2000).filter(|_| Context::below(None, share).is_sampled).count();
        assert_eq!((recorded(0.0), recorded(1.0)), (0, 2000));
        let half = recorded(0.5);
        assert!((800..1200).contains(&half), "{half}");
    }

    #[test]
    fn two_parents_are_none() {
        let one = [(TRACE_PARENT, PARENT.parse().unwrap()), (TRACE_STATE, "a=1".parse().unwrap())];
        let mut headers: HeaderMap = one.into_iter().collect();
        headers.append(TRACE_STATE, "b=2".parse().unwrap());
        assert_eq!(of_headers(&headers).unwrap().1, "a=1,b=2");
        headers.append(TRACE_PARENT, PARENT.parse().unwrap());
        assert_eq!(of_headers(&headers), None);
    }
}
