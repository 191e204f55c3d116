//! Figures, the machine and paragraphs as text, for README and the documents.

use crate::data::Report;

/// Returns a ratio; bold where we are behind.
pub fn shown(ratio: f64) -> String {
    let text = match ratio {
        9.95.. => format!("{ratio:.0}"),
        0.995.. => format!("{ratio:.1}"),
        _ => format!("{ratio:.2}"),
    };
    if ratio < 0.995 {
        format!("**{text}**")
    } else {
        text
    }
}

/// Returns a time in milliseconds, with fewer digits the longer it is.
pub fn shown_time(millis: f64) -> String {
    match millis {
        9.95.. => format!("{millis:.0}"),
        0.095.. => format!("{millis:.1}"),
        _ => format!("{millis:.2}"),
    }
}

/// Returns the machine and the versions, in a sentence without its full stop.
pub fn machine(report: &Report) -> String {
    let mut machines = report.measured.iter().map(|one| &one.machine);
    let known = machines.rfind(|machine| machine["erlang"].is_string());
    let Some(machine) = known else {
        return "The machine is not known".to_string();
    };
    let text = |name: &str| machine[name].as_str().unwrap_or("unknown").to_string();
    format!(
        "{} cores of a machine with \"{}\", Erlang/OTP {}",
        machine["schedulers"],
        text("processor"),
        text("erlang").split(',').next().unwrap_or_default()
    )
}

/// Lines of at most a hundred columns; empty lines at the end stay.
pub fn wrapped(text: &str) -> String {
    let body = text.trim_end();
    let (mut lines, mut line) = (String::new(), String::new());
    for word in body.split_whitespace() {
        if line.len() + word.len() >= 100 {
            lines += &line;
            lines.push('\n');
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line += word;
    }
    lines + &line + &text[body.len()..]
}
