//! Figures as a table for people and as JSON for programs.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use crate::measure::{Better, Figures, Measure, Target};

/// What was measured of one program or of several.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) title: String,
    pub(crate) measures: Vec<Measure>,
    pub(crate) figures: Vec<Figures>,
}

impl Table {
    /// A table of several rounds.
    pub(crate) fn of_rounds(measures: &[Measure], figures: Vec<Figures>) -> Self {
        Self { title: "median of all rounds".to_owned(), measures: measures.to_vec(), figures }
    }
}

/// A table for people. Whatever there is more of, measures or programs, has the lines.
pub(crate) fn text(table: &Table) -> String {
    if table.figures.len() > table.measures.len() { by_program(table) } else { by_measure(table) }
}

/// A line for each program.
fn by_program(Table { title, measures, figures }: &Table) -> String {
    let mut text = format!("{title:<32}");
    for measure in measures {
        let _ = write!(text, " {:>16}", measure.name);
    }
    text.push('\n');
    for of_one in figures {
        let _ = write!(text, "{:<32}", of_one.of);
        for measure in measures {
            let _ = write!(text, " {:>16}", shown(of_one, *measure));
        }
        text.push('\n');
    }
    text
}

/// A median with its unit.
fn shown(figures: &Figures, measure: Measure) -> String {
    let median = figures.median(measure);
    median.map(|value| format!("{} {:<3}", number(value), measure.unit)).unwrap_or_default()
}

/// The medians side by side: ours, that of what it is compared with, that of others; how many times better ours is than
/// the second, and whether that was promised.
fn by_measure(Table { title, measures, figures }: &Table) -> String {
    let mut text = format!("{title:<46}");
    for of_one in figures {
        let _ = write!(text, " {:>22}", of_one.of);
    }
    text.push_str(if figures.len() > 1 { "   better by  target\n" } else { "  target\n" });
    for &measure in measures {
        let _ = write!(text, "{:<46}", measure.name);
        for of_one in figures {
            let _ = write!(text, " {:>22}", shown(of_one, measure));
        }
        if figures.len() > 1 {
            let _ = write!(
                text,
                " {:>11}",
                advantage(figures, measure).map_or(String::new(), |times| format!("{times:.2} ×"))
            );
        }
        let _ = writeln!(text, "  {}", verdict(figures, measure).unwrap_or_default());
    }
    text
}

/// Whether every target that can be judged is met.
pub(crate) fn all_met(table: &Table) -> bool {
    table.measures.iter().all(|measure| is_met(&table.figures, *measure) != Some(false))
}

/// A single table by its programs; several by their titles.
pub(crate) fn json(tables: &[Table]) -> Value {
    match tables {
        [table] => json_of(table),
        tables => Value::Object(tables.iter().map(|table| (table.title.clone(), json_of(table))).collect()),
    }
}

fn json_of(Table { measures, figures, .. }: &Table) -> Value {
    let of_one = |figures: &Figures| -> Value {
        let measures = measures.iter().map(|measure| {
            let rounds: Vec<f64> = figures.all(*measure).collect();
            let value = json!({ "unit": measure.unit, "median": figures.median(*measure), "rounds": rounds });
            (measure.name.to_owned(), value)
        });
        Value::Object(measures.collect::<Map<_, _>>())
    };
    Value::Object(figures.iter().map(|figures| (figures.of.to_owned(), of_one(figures))).collect())
}

/// How many times better ours is.
fn advantage(figures: &[Figures], measure: Measure) -> Option<f64> {
    let [ours, other, ..] = figures else { return None };
    let (ours, other) = (ours.median(measure)?, other.median(measure)?);
    let times = match measure.better {
        Better::More => ours / other,
        Better::Less => other / ours,
    };
    // What is next to nothing, or less, is so many times nothing.
    (times.is_finite() && times > 0.0).then_some(times)
}

/// None where nothing was promised, or there is nothing to compare with.
fn is_met(figures: &[Figures], measure: Measure) -> Option<bool> {
    Some(match measure.target? {
        Target::Times(times) => advantage(figures, measure)? >= times,
        Target::Below(limit) => figures.first()?.median(measure)? < limit,
    })
}

fn verdict(figures: &[Figures], measure: Measure) -> Option<String> {
    let target = match measure.target? {
        Target::Times(times) => format!("at least {} ×", (times * 100.0).round() / 100.0),
        Target::Below(limit) => format!("below {limit} {}", measure.unit).trim_end().to_owned(),
    };
    Some(match is_met(figures, measure) {
        Some(true) => format!("{target}: met"),
        Some(false) => format!("{target}: MISSED"),
        None => target,
    })
}

/// Three digits are enough.
fn number(value: f64) -> String {
    let digits = match value.abs() {
        100.0.. => 0,
        10.0.. => 1,
        _ => 2,
    };
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kube::measures::{ALL, CUSTOM_RESOURCES, START_TO_READY};

    fn figures(server: &'static str, start: f64, creates: [f64; 3]) -> Figures {
        let rounds = creates.map(|creates| vec![(START_TO_READY, start), (CUSTOM_RESOURCES, creates)]);
        Figures { of: server, rounds: rounds.to_vec() }
    }

    fn table(figures: impl Into<Vec<Figures>>) -> Table {
        Table::of_rounds(&ALL, figures.into())
    }

    #[test]
    fn targets_are_judged_by_medians() {
        let real = |creates| figures("real", 4000.0, creates);
        let good = table([figures("ours", 149.0, [10.0, 300.0, 400.0]), real([100.0, 100.0, 900.0])]);
        assert!(all_met(&good), "{}", text(&good));
        let slow_start = table([figures("ours", 150.0, [300.0; 3]), real([100.0; 3])]);
        assert!(!all_met(&slow_start), "{}", text(&slow_start));
        let slow_creates = table([figures("ours", 1.0, [299.0; 3]), real([100.0; 3])]);
        assert!(text(&slow_creates).contains("at least 3 ×: MISSED"), "{}", text(&slow_creates));
        assert!(!all_met(&slow_creates));
    }

    #[test]
    fn many_programs_have_a_line_each() {
        let programs = vec![figures("one", 1.0, [5.0; 3]), figures("two", 123.4, [6.0; 3])];
        let text = text(&Table::of_rounds(&[START_TO_READY], programs));
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[1..], [["one", "1.00", "ms"], ["two", "123", "ms"]]);
    }

    #[test]
    fn alone_there_is_nothing_to_compare_with() {
        let alone = table([figures("ours", 1.0, [1.0; 3])]);
        assert!(all_met(&alone) && !text(&alone).contains("MISSED"));
    }
}
