//! Pictures in SVG: curves and points on two logarithmic axes to the base of two.
//!
//! The background is transparent and all colours are of medium lightness, so that a picture can be
//! read on white and on black.

use plotters::coord::Shift;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::error::Error;
use std::ops::Range;

/// A curve, and single points in its colour.
pub struct Series {
    /// The name in the picture.
    pub name: String,
    /// The corners of the curve: positive numbers.
    pub line: Vec<(f64, f64)>,
    /// The single points.
    pub dots: Vec<(f64, f64)>,
    /// `true` if the line is dashed.
    pub dashed: bool,
}

/// A picture.
pub struct Chart {
    /// The heading.
    pub title: String,
    /// The title of the x axis.
    pub x_title: String,
    /// The unit of the y axis.
    pub y_title: String,
    /// The content.
    pub series: Vec<Series>,
}

const SIZE: (u32, u32) = (1080, 460);
/// Room for the names of the series.
const NAMES: u32 = 380;
const GRAY: RGBColor = RGBColor(0x7a, 0x7a, 0x7a);
const COLOURS: [RGBColor; 7] = [
    RGBColor(0x1f, 0x7f, 0xd0),
    RGBColor(0xd0, 0x66, 0x1f),
    RGBColor(0x2f, 0x9e, 0x4f),
    RGBColor(0xb0, 0x4f, 0xc0),
    RGBColor(0xc0, 0x3f, 0x4f),
    RGBColor(0x8a, 0x8a, 0x1f),
    RGBColor(0x1f, 0x9e, 0xa0),
];

impl Chart {
    /// Returns the titles, and the points of all series.
    pub fn to_json(&self) -> serde_json::Value {
        let series = self.series.iter().map(|series| {
            serde_json::json!({
                "name": series.name,
                "line": series.line,
                "dots": series.dots,
                "dashed": series.dashed,
            })
        });
        serde_json::json!({
            "kind": "curves",
            "title": self.title,
            "x_title": self.x_title,
            "y_title": self.y_title,
            "series": series.collect::<Vec<_>>(),
        })
    }

    /// Returns the text of the picture.
    pub fn to_svg(&self) -> Result<String, Box<dyn Error>> {
        let mut svg = String::new();
        self.draw(&SVGBackend::with_string(&mut svg, SIZE).into_drawing_area())?;
        Ok(svg)
    }

    fn draw(&self, area: &DrawingArea<SVGBackend<'_>, Shift>) -> Result<(), Box<dyn Error>> {
        let text = ("sans-serif", 16, &GRAY).into_text_style(area);
        let title = ("sans-serif", 18, FontStyle::Bold, &GRAY).into_text_style(area);
        let points = || {
            self.series
                .iter()
                .flat_map(|one| one.line.iter().chain(&one.dots))
        };
        let x = limits(points().map(|point| point.0));
        let y = limits(points().map(|point| point.1));
        // The number of labels is that of steps, so that each power has one, and nothing else.
        let labels = [&x, &y].map(|range| (range.end / range.start).log2() as usize);
        let (x, y) = (x.log_scale().base(2.0), y.log_scale().base(2.0));
        let (left, right) = area.split_horizontally(SIZE.0 - NAMES);
        let mut chart = ChartBuilder::on(&left)
            .caption(&self.title, title)
            .margin(10)
            .x_label_area_size(44)
            .y_label_area_size(64)
            .build_cartesian_2d(x, y)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .bold_line_style(GRAY.mix(0.3))
            .light_line_style(TRANSPARENT)
            .axis_style(GRAY)
            .label_style(text.clone())
            .x_labels(labels[0])
            .y_labels(labels[1])
            .x_label_formatter(&|value| short(*value))
            .y_label_formatter(&|value| short(*value))
            .x_desc(&self.x_title)
            .y_desc(&self.y_title)
            .draw()?;
        // The names are in the order of the ends of the curves.
        let mut coloured: Vec<_> = self.series.iter().zip(COLOURS.iter().cycle()).collect();
        let end = |series: &Series| series.line.last().map_or(0.0, |point| point.1);
        coloured.sort_by(|(a, _), (b, _)| end(b).total_cmp(&end(a)));
        for ((series, colour), y) in coloured.into_iter().zip((48..).step_by(22)) {
            // A line without gaps is one dash.
            let dash = if series.dashed { 9 } else { i32::MAX };
            let style = colour.stroke_width(2);
            chart.draw_series(DashedLineSeries::new(series.line.clone(), dash, 5, style))?;
            let dots = series.dots.iter();
            chart.draw_series(dots.map(|dot| Circle::new(*dot, 5, colour.filled())))?;
            right.draw(&DashedPathElement::new([(0, y), (28, y)], dash, 5, style))?;
            let name = text.color(colour).pos(Pos::new(HPos::Left, VPos::Center));
            right.draw(&Text::new(series.name.as_str(), (36, y), name))?;
        }
        Ok(area.present()?)
    }
}

/// Returns the powers of two around all these numbers.
fn limits(numbers: impl Iterator<Item = f64>) -> Range<f64> {
    let (low, high) = numbers.fold((f64::MAX, f64::MIN), |(low, high), number| {
        (
            low.min(number.log2().floor()),
            high.max(number.log2().ceil()),
        )
    });
    low.exp2()..high.max(low + 1.0).exp2()
}

/// Returns a power of two as axes show it.
fn short(power: f64) -> String {
    match power {
        1.0.. => power.to_string(),
        _ => format!("1/{}", 1.0 / power),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_shows_its_series() {
        let series = |name: &str, dots| Series {
            name: name.to_string(),
            line: vec![(1.0, 0.3), (100.0, 100.0)],
            dots,
            dashed: false,
        };
        let chart = Chart {
            title: "title".to_string(),
            x_title: "cores".to_string(),
            y_title: "speed".to_string(),
            series: vec![series("a < b", vec![]), series("c", vec![(2.0, 3.0)])],
        };
        let svg = chart.to_svg().expect("a picture");
        assert!(svg.contains("a &lt; b"));
        assert_eq!(svg.matches("<circle").count(), 1);
        let ticks = ["1/4", "1/2", "1", "2", "64", "128"];
        assert!(
            ticks
                .iter()
                .all(|tick| svg.contains(&format!(">\n{tick}\n<"))),
            "{svg}"
        );
        assert!(!svg.contains("256"));
    }
}
