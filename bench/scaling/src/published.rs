//! Published throughput of `ets`, to compare the model with.
//!
//! The figures are those of the benchmark of Erlang/OTP for `ets`, as K. Winblad published them
//! with *The new scalable ETS ordered_set* (Erlang/OTP blog, 2019): integer keys, a range of a
//! million, half of them in the table.

use crate::designs::{Ets, PUBLISHED};

/// One published figure.
pub struct Figure {
    /// The design.
    pub design: Ets,
    /// The part of the operations that insert or delete; the others look up.
    pub writes: f64,
    /// Erlang processes, on as many schedulers.
    pub threads: usize,
    /// Operations a second.
    pub per_second: f64,
    /// The factor by which the model may be off.
    pub within: f64,
}

const fn figure(design: Ets, writes: f64, threads: usize, kilo: f64, within: f64) -> Figure {
    Figure {
        design,
        writes,
        threads,
        per_second: kilo * 1e3,
        within,
    }
}

/// All of them. Those of one thread are the calibration.
pub const FIGURES: [Figure; 26] = [
    figure(Ets::Tree21, 1.0, 1, 932.0, 1.01),
    figure(Ets::Tree21, 1.0, 64, 25.5, 1.1),
    figure(Ets::Tree21, 0.2, 1, 949.0, 1.01),
    figure(Ets::Tree21, 0.2, 64, 79.0, 2.0),
    figure(Ets::Tree21, 0.02, 1, 997.0, 1.01),
    figure(Ets::Tree21, 0.02, 64, 220.0, 2.0),
    figure(Ets::Tree21, 0.0, 1, 1000.0, 1.01),
    figure(Ets::Tree21, 0.0, 64, 5120.0, 1.25),
    figure(Ets::Tree22, 1.0, 1, 772.0, 1.01),
    figure(Ets::Tree22, 1.0, 2, 1330.0, 1.5),
    figure(Ets::Tree22, 1.0, 8, 4610.0, 1.5),
    figure(Ets::Tree22, 1.0, 64, 20_250.0, 1.5),
    figure(Ets::Tree22, 0.2, 1, 761.0, 1.01),
    figure(Ets::Tree22, 0.2, 2, 1360.0, 1.5),
    figure(Ets::Tree22, 0.2, 8, 4460.0, 1.5),
    figure(Ets::Tree22, 0.2, 64, 21_270.0, 1.5),
    figure(Ets::Tree22, 0.0, 1, 848.0, 1.01),
    figure(Ets::Tree22, 0.0, 2, 1650.0, 1.5),
    figure(Ets::Tree22, 0.0, 8, 6090.0, 1.5),
    figure(Ets::Tree22, 0.0, 64, 30_250.0, 1.5),
    figure(Ets::Set22, 1.0, 1, 1160.0, 1.01),
    figure(Ets::Set22, 1.0, 16, 6420.0, 2.0),
    figure(Ets::Set22, 1.0, 64, 1380.0, 2.0),
    figure(Ets::Set22, 0.0, 1, 1250.0, 1.01),
    figure(Ets::Set22, 0.0, 64, 37_300.0, 1.5),
    figure(Ets::Tree22, 0.02, 64, 25_120.0, 1.5),
];

/// Seconds of an operation of one process: published, or that of the mix with the next larger part
/// of writes.
pub fn alone(design: Ets, writes: f64) -> f64 {
    // The counters make no difference to one process.
    let design = match design {
        Ets::Set25 => Ets::Set22,
        design => design,
    };
    let of_one = FIGURES
        .iter()
        .filter(|figure| figure.design == design && figure.threads == 1)
        .filter(|figure| figure.writes >= writes);
    let nearest = of_one.min_by(|a, b| a.writes.total_cmp(&b.writes));
    1.0 / nearest
        .expect("each design has a figure of writes only")
        .per_second
}

/// `true` if the time of waking a thread is fitted to this figure.
pub fn is_fitted(figure: &Figure) -> bool {
    (figure.design, figure.writes, figure.threads) == (Ets::Tree21, 1.0, 64)
}

/// Returns the figure of the model for the same.
pub fn predict(figure: &Figure) -> f64 {
    let alone = alone(figure.design, figure.writes);
    let operation = figure
        .design
        .operation(figure.writes, alone, figure.threads);
    operation.throughput(&PUBLISHED, figure.threads)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_figures_come_out_within_their_bounds() {
        for figure in &FIGURES {
            let model = predict(figure);
            let factor = (model / figure.per_second).max(figure.per_second / model);
            assert!(
                factor <= figure.within,
                "{}, {} writes, {} threads: {:.0} published, {model:.0} in the model",
                figure.design.name(),
                figure.writes,
                figure.threads,
                figure.per_second
            );
        }
    }

    /// Checks the shape of the published curves without their figures.
    #[test]
    fn curves_have_the_published_shape() {
        let rate = |design: Ets, writes: f64, threads: usize| {
            let operation = design.operation(writes, alone(design, writes), threads);
            operation.throughput(&PUBLISHED, threads)
        };
        // One lock collapses, and a contention adapting tree does not.
        assert!(rate(Ets::Tree21, 1.0, 64) < rate(Ets::Tree21, 1.0, 1) / 20.0);
        assert!(rate(Ets::Tree22, 1.0, 64) > rate(Ets::Tree22, 1.0, 1) * 20.0);
        // The count of readers of one lock limits lookups, and those of 64 locks do not.
        assert!(rate(Ets::Tree21, 0.0, 64) < rate(Ets::Tree21, 0.0, 1) * 8.0);
        assert!(rate(Ets::Set22, 0.0, 64) > rate(Ets::Tree22, 0.0, 64));
        // A central counter makes more threads slower from some number on.
        let set = [4, 16, 64].map(|threads| rate(Ets::Set22, 1.0, threads));
        assert!(set[1] > 1.5 * set[0] && set[2] < set[0], "{set:?}");
        assert!(set[2] < rate(Ets::Tree22, 1.0, 64));
        assert!(rate(Ets::Set25, 1.0, 64) > 2.0 * set[2]);
    }
}
