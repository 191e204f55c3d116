//! A time series with ranges: readings by station and time, old ones removed, all in memory.
//!
//! Run it with `cargo run --example map_time_series`.

use ats::{Key, OrderedMap, Value};
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Key)]
struct Reading {
    station: String,
    time: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Value)]
struct Weather {
    degrees: f32,
    wind: u16,
}

fn main() {
    let readings: OrderedMap<Reading, Weather> = OrderedMap::new();
    for station in ["bergen", "oslo", "tromso"] {
        readings.insert_many((0..1_000_u64).map(|minute| {
            let reading = Reading {
                station: station.into(),
                time: Duration::from_secs(60 * minute),
            };
            let weather = Weather {
                degrees: (minute % 20) as f32,
                wind: (minute % 7) as u16,
            };
            (reading, weather)
        }));
    }
    let at = |station: &str, hour: u64| Reading {
        station: station.into(),
        time: Duration::from_secs(3_600 * hour),
    };

    // The warmest of an hour, and the last two of a station, from the end.
    let hour = readings.range(at("oslo", 3)..at("oslo", 4));
    let warmest = hour
        .map(|(_, weather)| weather.degrees)
        .fold(f32::MIN, f32::max);
    assert_eq!(warmest.round() as i32, 19);
    let last: Vec<u64> = readings
        .range(at("oslo", 0)..at("oslo", 1_000))
        .rev()
        .take(2)
        .map(|(reading, _)| reading.time.as_secs() / 60)
        .collect();
    assert_eq!(last, [999, 998]);

    // A report reads one moment, while old readings go.
    let now = readings.snapshot();
    assert_eq!(readings.remove_range(at("oslo", 0)..at("oslo", 10)), 600);
    assert_eq!(readings.count(at("oslo", 0)..at("oslo", 1_000)), 400);
    assert_eq!(now.len(), 3_000);
    println!("{} of {} readings left", readings.len(), now.len());
}
