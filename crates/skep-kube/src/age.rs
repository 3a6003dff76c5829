//! Ages, as tables show them: the more, the coarser.

use time::{Date, Duration, Month, OffsetDateTime, Time, UtcOffset};

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// A span of time: `59s`, `2m1s`, `10m`, `3h1m`, `47h`, `2d1h`, `365d`, `2y1d`.
pub fn shown(span: Duration) -> String {
    // A clock that is a second or two behind is no reason to complain.
    if span.whole_seconds() < -1 {
        return "<invalid>".to_owned();
    }
    let seconds = span.whole_seconds().max(0);
    let (minutes, hours, days, years) = (seconds / MINUTE, seconds / HOUR, seconds / DAY, seconds / YEAR);
    let two = |large: i64, unit: &str, small: i64, small_unit: &str| match small {
        0 => format!("{large}{unit}"),
        _ => format!("{large}{unit}{small}{small_unit}"),
    };
    if seconds < 2 * MINUTE {
        format!("{seconds}s")
    } else if minutes < 10 {
        two(minutes, "m", seconds % MINUTE, "s")
    } else if minutes < 180 {
        format!("{minutes}m")
    } else if hours < 8 {
        two(hours, "h", minutes % 60, "m")
    } else if hours < 48 {
        format!("{hours}h")
    } else if days < 8 {
        two(days, "d", hours % 24, "h")
    } else if years < 2 {
        format!("{days}d")
    } else if years < 8 {
        two(years, "y", days % 365, "d")
    } else {
        format!("{years}y")
    }
}

/// The age of a timestamp (RFC 3339).
pub fn since(timestamp: &str, now: OffsetDateTime) -> String {
    if timestamp.is_empty() {
        return "<unknown>".to_owned();
    }
    match read(timestamp) {
        None => "<invalid>".to_owned(),
        // What Go takes for no time at all.
        Some(time) if time.year() == 1 && time.ordinal() == 1 && time.time() == Time::MIDNIGHT => {
            "<unknown>".to_owned()
        }
        Some(time) => shown(now - time),
    }
}

fn read(text: &str) -> Option<OffsetDateTime> {
    let number = |from: usize, to: usize| {
        text.get(from..to).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?.parse::<u16>().ok()
    };
    let is = |at: usize, mark: u8| text.as_bytes().get(at) == Some(&mark);
    if !(is(4, b'-') && is(7, b'-') && is(10, b'T') && is(13, b':') && is(16, b':')) {
        return None;
    }
    let small = |from: usize| number(from, from + 2).and_then(|value| u8::try_from(value).ok());
    let date = Date::from_calendar_date(i32::from(number(0, 4)?), Month::try_from(small(5)?).ok()?, small(8)?).ok()?;
    let rest = text.get(19..)?;
    let (nanoseconds, zone) = match rest.strip_prefix(['.', ',']) {
        Some(fraction) => {
            let zone = fraction.trim_start_matches(|digit: char| digit.is_ascii_digit());
            let digits = &fraction[..fraction.len() - zone.len()];
            (!digits.is_empty()).then_some((nanoseconds(digits), zone))?
        }
        None => (0, rest),
    };
    let time = Time::from_hms_nano(small(11)?, small(14)?, small(17)?, nanoseconds).ok()?;
    Some(date.with_time(time).assume_offset(offset(zone)?))
}

/// The first nine digits of a fraction of a second.
fn nanoseconds(digits: &str) -> u32 {
    let digits = digits.bytes().chain(std::iter::repeat(b'0')).take(9);
    digits.fold(0, |number, digit| number * 10 + u32::from(digit - b'0'))
}

fn offset(zone: &str) -> Option<UtcOffset> {
    if zone == "Z" {
        return Some(UtcOffset::UTC);
    }
    let (sign, rest) = if let Some(rest) = zone.strip_prefix('+') { (1, rest) } else { (-1, zone.strip_prefix('-')?) };
    let (hours, minutes) = rest.split_once(':')?;
    let part = |text: &str| {
        let digits = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<i8>().ok().filter(|_| digits)
    };
    UtcOffset::from_hms(sign * part(hours)?, sign * part(minutes)?, 0).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the real server wrote for objects of these ages, in seconds.
    const AGES: [(i64, &str); 36] = [
        (-100, "<invalid>"),
        (-5, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (1, "1s"),
        (59, "59s"),
        (60, "60s"),
        (119, "119s"),
        (120, "2m"),
        (121, "2m1s"),
        (180, "3m"),
        (599, "9m59s"),
        (600, "10m"),
        (605, "10m"),
        (3600, "60m"),
        (7199, "119m"),
        (10799, "179m"),
        (10800, "3h"),
        (10860, "3h1m"),
        (14400, "4h"),
        (28799, "7h59m"),
        (28800, "8h"),
        (86400, "24h"),
        (172_799, "47h"),
        (172_800, "2d"),
        (176_400, "2d1h"),
        (259_200, "3d"),
        (691_199, "7d23h"),
        (691_200, "8d"),
        (31_536_000, "365d"),
        (62_985_600, "729d"),
        (63_072_000, "2y"),
        (63_158_400, "2y1d"),
        (94_608_000, "3y"),
        (252_288_000, "8y"),
        (283_824_000, "9y"),
    ];

    #[test]
    fn ages_are_written_as_on_the_real_server() {
        for (seconds, text) in AGES {
            assert_eq!(shown(Duration::seconds(seconds)), text, "{seconds}");
        }
    }

    #[test]
    fn timestamps_are_read_as_strictly_as_on_the_real_server() {
        let now = read("2026-11-15T10:03:40Z").unwrap();
        let table = [
            ("2026-11-15", "<invalid>"),
            ("2026-11-15T09:00:00", "<invalid>"),
            ("2026-11-15T09:00:00+02:00", "3h3m"),
            ("2026-11-15T09:00:00.123Z", "63m"),
            ("2026-11-15T10:03:35.5Z", "4s"),
            ("", "<unknown>"),
            ("x", "<invalid>"),
            ("2026-11-15T09:00:00z", "<invalid>"),
            ("0001-01-01T00:00:00Z", "<unknown>"),
            ("2026-13-15T09:00:00Z", "<invalid>"),
            ("2026-11-15T09:00:00.Z", "<invalid>"),
            ("é026-11-15T09:00:00Z", "<invalid>"),
        ];
        for (timestamp, text) in table {
            assert_eq!(since(timestamp, now), text, "{timestamp}");
        }
    }
}
