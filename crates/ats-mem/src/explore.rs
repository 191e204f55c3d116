//! Runs of models under `loom`.

/// Runs a model with at most this many switches at points where a thread could have gone on.
pub(crate) fn check(switches: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(switches);
    builder.max_branches = 20_000;
    builder.check(model);
}

/// Runs a model that takes thirty to a hundred times as long with two switches as with one: with
/// one, or with two if `ATS_LONG_MODELS` is set in the environment.
pub(crate) fn check_long(model: impl Fn() + Sync + Send + 'static) {
    let switches = 1 + usize::from(std::env::var_os("ATS_LONG_MODELS").is_some());
    check(switches, model);
}
