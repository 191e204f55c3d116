//! One view of a chart, as plotly.js takes it.

use serde_json::{Value, json};

/// One view.
pub struct View {
    /// The group of views it belongs to.
    pub group: String,
    /// The name in the group.
    pub name: String,
    /// The finding, in a sentence.
    pub shows: String,
    /// Traces of plotly.js.
    pub traces: Vec<Value>,
    /// The layout, without the part that all views share.
    pub layout: Value,
    /// The frames of an animation.
    pub frames: Vec<Value>,
}

impl View {
    /// Makes a view without frames.
    pub fn new(group: &str, name: &str, shows: String, traces: Vec<Value>, layout: Value) -> Self {
        let (group, name) = (group.to_string(), name.to_string());
        View {
            group,
            name,
            shows,
            traces,
            layout,
            frames: Vec::new(),
        }
    }

    /// Returns the view as the page takes it.
    pub fn to_json(&self) -> Value {
        json!({
            "group": self.group,
            "name": self.name,
            "shows": self.shows,
            "traces": self.traces,
            "layout": self.layout,
            "frames": self.frames,
        })
    }
}
