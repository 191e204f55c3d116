//! The rows of README's picture, in the form of `bench/results/beside-ets.csv`, from which
//! `make figures` draws it.

use crate::data::Report;
use std::fmt::Write as _;

/// Returns the wide and the hot rows with one process and with two.
pub fn table(report: &Report) -> String {
    let mut table = String::from(
        "# Throughput of ats over that of ets, median of all rounds: make report.\n\
         # Half of 2^20 keys is present, of 1000 where it says hot; keys are drawn as it goes.\n\
         # over_plain: ets without options; over_wc: ets with write_concurrency and \
         read_concurrency.\n\
         workload,keys,type,processes,over_plain,over_wc\n",
    );
    let wide = report.rows("integers-wide").iter();
    let hot = report.rows("integers-hot").iter();
    for row in wide.chain(hot).filter(|row| row.processes() <= 2) {
        let (Some(plain), Some(wc)) = (row.ratio("ets"), row.ratio("ets wc")) else {
            continue;
        };
        let name = row.text("name").replace(", ", "; ");
        let hot = if row.text("set") == "hot" {
            "; hot"
        } else {
            ""
        };
        let (kind, processes) = (row.text("type"), row.processes());
        let _ = writeln!(
            table,
            "{name}{hot},integers,{kind},{processes},{plain:.2},{wc:.2}"
        );
    }
    table
}
