//! Times as Go programs read them, and what they say about texts that are none.

use crate::go_text::quoted;

/// How a time must be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// A fraction of a second may be there or not.
    Seconds,
    /// With six digits of fraction, no more and no less.
    Micros,
}

impl Layout {
    /// The layout in Go's own terms: a certain second of 2006.
    const fn example(self) -> &'static str {
        match self {
            Self::Seconds => "2006-01-02T15:04:05Z07:00",
            Self::Micros => "2006-01-02T15:04:05.000000Z07:00",
        }
    }
}

/// What is wrong with a text that should be a time; nothing when it is one.
pub fn complaint(text: &str, layout: Layout) -> Option<String> {
    let mut reader = Reader { rest: text };
    let problem = reader.time(layout).err()?;
    let text = quoted(text);
    Some(match problem {
        Problem::Element { rest, element } => {
            let layout = quoted(layout.example());
            format!("parsing time {text} as {layout}: cannot parse {} as {}", quoted(rest), quoted(element))
        }
        Problem::Range(what) => format!("parsing time {text}: {what} out of range"),
        Problem::Extra(rest) => format!("parsing time {text}: extra text: {}", quoted(rest)),
    })
}

enum Problem<'a> {
    /// What is left of the text does not begin with what the layout has next.
    Element {
        rest: &'a str,
        element: &'static str,
    },
    Range(&'static str),
    Extra(&'a str),
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn time(&mut self, layout: Layout) -> Result<(), Problem<'a>> {
        let year = self.digits(4, 4, "2006")?;
        self.literal("-")?;
        let month = self.digits(2, 2, "01")?;
        check((1..=12).contains(&month), "month")?;
        self.literal("-")?;
        let day = self.digits(2, 2, "02")?;
        self.literal("T")?;
        let hour = self.digits(1, 2, "15")?;
        check(hour < 24, "hour")?;
        self.literal(":")?;
        check(self.digits(2, 2, "04")? < 60, "minute")?;
        self.literal(":")?;
        check(self.digits(2, 2, "05")? < 60, "second")?;
        match layout {
            Layout::Seconds => self.optional_fraction(),
            Layout::Micros => self.six_digits()?,
        }
        self.zone()?;
        if !self.rest.is_empty() {
            return Err(Problem::Extra(self.rest));
        }
        check((1..=days_in(year, month)).contains(&day), "day")
    }

    fn leading_digits(&self) -> usize {
        self.rest.bytes().take_while(u8::is_ascii_digit).count()
    }

    /// As many digits as there are, up to a limit, but not too few.
    fn digits(&mut self, least: usize, most: usize, element: &'static str) -> Result<u32, Problem<'a>> {
        let count = self.leading_digits().min(most);
        if count < least {
            return Err(Problem::Element { rest: self.rest, element });
        }
        let (number, rest) = self.rest.split_at(count);
        self.rest = rest;
        Ok(number.parse().unwrap_or_default())
    }

    fn literal(&mut self, expected: &'static str) -> Result<(), Problem<'a>> {
        let Some(rest) = self.rest.strip_prefix(expected) else {
            return Err(Problem::Element { rest: self.rest, element: expected });
        };
        self.rest = rest;
        Ok(())
    }

    fn optional_fraction(&mut self) {
        if let Some(fraction) = self.rest.strip_prefix(['.', ',']) {
            let after = Reader { rest: fraction };
            let count = after.leading_digits();
            if count > 0 {
                self.rest = &fraction[count..];
            }
        }
    }

    fn six_digits(&mut self) -> Result<(), Problem<'a>> {
        let fraction = self.rest.strip_prefix(['.', ',']).unwrap_or_default();
        if (Reader { rest: fraction }).leading_digits() < 6 {
            return Err(Problem::Element { rest: self.rest, element: ".000000" });
        }
        self.rest = &fraction[6..];
        Ok(())
    }

    /// `Z`, or hours and minutes east or west of it.
    fn zone(&mut self) -> Result<(), Problem<'a>> {
        if let Some(rest) = self.rest.strip_prefix('Z') {
            self.rest = rest;
            return Ok(());
        }
        let wrong = Problem::Element { rest: self.rest, element: "Z07:00" };
        let mut offset = Reader { rest: self.rest.strip_prefix(['+', '-']).unwrap_or_default() };
        let (Ok(hours), Ok(()), Ok(minutes)) =
            (offset.digits(2, 2, "07"), offset.literal(":"), offset.digits(2, 2, "00"))
        else {
            return Err(wrong);
        };
        check(hours <= 24, "time zone offset hour")?;
        check(minutes <= 60, "time zone offset minute")?;
        self.rest = offset.rest;
        Ok(())
    }
}

fn check<'a>(fine: bool, what: &'static str) -> Result<(), Problem<'a>> {
    if fine { Ok(()) } else { Err(Problem::Range(what)) }
}

const fn days_in(year: u32, month: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each line was tried on the real server.
    #[test]
    fn complaints_are_those_of_the_real_server() {
        for (text, complaint) in [
            ("yesterday", r#"as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006""#),
            ("2020-13-01T00:00:00Z", "month out of range"),
            ("2020-01-01T00:00:00Zx", r#"extra text: "x""#),
        ] {
            check_complaint(Layout::Seconds, text, complaint);
        }
        for (text, complaint) in [
            ("", r#"cannot parse "" as "2006""#),
            ("20-02-20T03:04:05.123456Z", r#"cannot parse "20-02-20T03:04:05.123456Z" as "2006""#),
            ("2020-1-20T24:04:05.123456Z", r#"cannot parse "1-20T24:04:05.123456Z" as "01""#),
            ("2020-02-20 03:04:05.123456Z", r#"cannot parse " 03:04:05.123456Z" as "T""#),
            ("2020-01-02T03:04:05Z", r#"cannot parse "Z" as ".000000""#),
            ("2020-01-02T03:04:05.123Z", r#"cannot parse ".123Z" as ".000000""#),
            ("2020-01-02T03:04:05.123456789Z", r#"cannot parse "789Z" as "Z07:00""#),
            ("2020-02-20T03:04:05.123456", r#"cannot parse "" as "Z07:00""#),
            ("2020-02-20T03:04:05.123456+5:00", r#"cannot parse "+5:00" as "Z07:00""#),
            ("2020-02-20T03:04:05.123456+25:00", "time zone offset hour out of range"),
            ("2020-02-30T03:04:05.123456Z", "day out of range"),
            ("2020-00-20T24:04:05.123456Z", "month out of range"),
            ("2020-02-20T24:04:05.123456Z", "hour out of range"),
            ("2020-01-02T03:04:65.123456Z", "second out of range"),
        ] {
            check_complaint(Layout::Micros, text, complaint);
        }
    }

    fn check_complaint(layout: Layout, text: &str, end: &str) {
        let found = complaint(text, layout).unwrap();
        assert!(found.starts_with(&format!("parsing time {}", quoted(text))) && found.ends_with(end), "{found}");
    }

    #[test]
    fn times_are_times() {
        for text in ["2020-02-29T03:04:05Z", "2020-02-20T3:04:05.5+01:30", "2020-02-20T23:59:59,123456789-12:00"] {
            assert_eq!(complaint(text, Layout::Seconds), None, "{text}");
        }
        assert_eq!(complaint("2020-02-20T3:04:05.123456Z", Layout::Micros), None);
    }
}
