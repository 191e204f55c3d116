//! Bars, on a terminal.

use crate::arguments::Output;
use ats_disk::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::ops::ControlFlow;

/// A bar for long work. It is shown on the standard error, if that is a terminal.
pub(crate) struct Bar(ProgressBar);

impl Bar {
    /// Makes a bar for work with this name.
    pub(crate) fn new(what: &'static str, output: Output) -> Self {
        let target = if output.quiet {
            ProgressDrawTarget::hidden()
        } else {
            // Nothing is drawn without a terminal.
            ProgressDrawTarget::stderr()
        };
        let bar = ProgressBar::with_draw_target(Some(0), target);
        let style = "{msg} [{wide_bar}] {binary_bytes} of {binary_total_bytes}, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message(what);
        Bar(bar)
    }

    /// Shows how far the work has come.
    pub(crate) fn show(&self, progress: Progress) -> ControlFlow<()> {
        // Work that comes to be known on the way is added to the total.
        self.0.set_length(progress.total.max(progress.done));
        self.0.set_position(progress.done);
        ControlFlow::Continue(())
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
