//! Pictures in SVG: curves and points on two logarithmic axes to the base of two.
//!
//! The background is transparent and all colours are of medium lightness, so that a picture can be
//! read on white and on black.

use std::fmt::Write;

/// A curve, or single points.
pub struct Series {
    /// What the picture calls it.
    pub name: String,
    /// Positive numbers.
    pub points: Vec<(f64, f64)>,
    /// Whether to draw points without a line between them. They take the colour of the series
    /// before.
    pub dots: bool,
    /// Whether the line is dashed.
    pub dashed: bool,
}

/// A picture.
pub struct Chart {
    /// Its heading.
    pub title: String,
    /// The title of the x axis.
    pub x_title: String,
    /// The unit of the y axis; its ticks are powers of two, times the `unit`.
    pub y_title: String,
    /// What is in it.
    pub series: Vec<Series>,
}

const WIDTH: f64 = 1040.0;
const HEIGHT: f64 = 460.0;
const LEFT: f64 = 72.0;
/// Room for the names of the series.
const RIGHT: f64 = 350.0;
const TOP: f64 = 60.0;
const BOTTOM: f64 = 52.0;

const INK: &str = "#7a7a7a";
const COLOURS: [&str; 7] = [
    "#1f7fd0", "#d0661f", "#2f9e4f", "#b04fc0", "#c03f4f", "#8a8a1f", "#1f9ea0",
];

/// From numbers to places in the picture; the limits are powers of two.
struct Scales {
    x: (f64, f64),
    y: (f64, f64),
}

impl Scales {
    fn of(chart: &Chart) -> Self {
        let all = || chart.series.iter().flat_map(|series| &series.points);
        let limits = |values: &mut dyn Iterator<Item = f64>| {
            let (low, high) = values.fold((f64::MAX, f64::MIN), |(low, high), value| {
                (low.min(value.log2()), high.max(value.log2()))
            });
            (low.floor(), high.ceil().max(low.floor() + 1.0))
        };
        Scales {
            x: limits(&mut all().map(|point| point.0)),
            y: limits(&mut all().map(|point| point.1)),
        }
    }

    fn x(&self, value: f64) -> f64 {
        let part = (value.log2() - self.x.0) / (self.x.1 - self.x.0);
        LEFT + part * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        let part = (value.log2() - self.y.0) / (self.y.1 - self.y.0);
        HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM)
    }
}

impl Chart {
    /// The text of the picture.
    pub fn to_svg(&self) -> String {
        let scales = Scales::of(self);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
             role=\"img\" font-family=\"sans-serif\" font-size=\"13\" \
             fill=\"{INK}\">\n<title>{}</title>\n",
            escaped(&self.title)
        );
        let bold = "font-size=\"15\" font-weight=\"bold\"";
        text(&mut svg, (LEFT, 24.0), "start", bold, &self.title);
        text(&mut svg, (LEFT, 46.0), "start", "", &self.y_title);
        let middle = (LEFT + WIDTH - RIGHT) / 2.0;
        text(
            &mut svg,
            (middle, HEIGHT - 10.0),
            "middle",
            "",
            &self.x_title,
        );
        self.axes(&mut svg, &scales);
        let mut colour = 0;
        for (index, series) in self.series.iter().enumerate() {
            colour += usize::from(index > 0 && !series.dots);
            self.draw(&mut svg, &scales, series, COLOURS[colour % COLOURS.len()]);
        }
        self.legend(&mut svg);
        svg + "</svg>\n"
    }

    fn axes(&self, svg: &mut String, scales: &Scales) {
        for power in scales.y.0 as i32..=scales.y.1 as i32 {
            let y = scales.y(2_f64.powi(power));
            let _ = writeln!(
                svg,
                "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\" stroke=\"{INK}\" \
                 stroke-opacity=\"0.3\"/>",
                WIDTH - RIGHT
            );
            text(svg, (LEFT - 8.0, y + 4.0), "end", "", &short(power));
        }
        for power in scales.x.0 as i32..=scales.x.1 as i32 {
            let x = scales.x(2_f64.powi(power));
            text(
                svg,
                (x, HEIGHT - BOTTOM + 18.0),
                "middle",
                "",
                &short(power),
            );
        }
    }

    fn draw(&self, svg: &mut String, scales: &Scales, series: &Series, colour: &str) {
        let places = series
            .points
            .iter()
            .map(|(x, y)| (scales.x(*x), scales.y(*y)));
        if series.dots {
            for (x, y) in places {
                let _ = writeln!(
                    svg,
                    "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\" fill=\"{colour}\"/>"
                );
            }
            return;
        }
        let corners: Vec<String> = places.map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
        let dashes = match series.dashed {
            true => " stroke-dasharray=\"7 5\"",
            false => "",
        };
        let _ = writeln!(
            svg,
            "<path d=\"M{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" \
             stroke-linejoin=\"round\"{dashes}/>",
            corners.join("L")
        );
    }

    /// The names, in the order of the ends of the curves.
    fn legend(&self, svg: &mut String) {
        let lines = self.series.iter().filter(|series| !series.dots);
        let mut lines: Vec<_> = lines.enumerate().collect();
        let end = |series: &Series| series.points.last().map_or(0.0, |point| point.1);
        lines.sort_by(|(_, a), (_, b)| end(b).total_cmp(&end(a)));
        for (place, (colour, series)) in lines.into_iter().enumerate() {
            let colour = COLOURS[colour % COLOURS.len()];
            let place = (WIDTH - RIGHT + 16.0, TOP + 12.0 + 22.0 * place as f64);
            text(
                svg,
                place,
                "start",
                &format!("fill=\"{colour}\""),
                &series.name,
            );
        }
    }
}

/// A power of two as axes show it.
fn short(power: i32) -> String {
    match power {
        0.. => (1_u64 << power).to_string(),
        _ => format!("1/{}", 1_u64 << -power),
    }
}

fn text(svg: &mut String, (x, y): (f64, f64), anchor: &str, attributes: &str, text: &str) {
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" {attributes}>{}</text>",
        escaped(text)
    );
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_shows_its_series_within_its_frame() {
        let series = |dots| Series {
            name: "a < b".to_string(),
            points: vec![(1.0, 0.5), (128.0, 100.0)],
            dots,
            dashed: false,
        };
        let chart = Chart {
            title: "title".to_string(),
            x_title: "cores".to_string(),
            y_title: "speed".to_string(),
            series: vec![series(false), series(true)],
        };
        let svg = chart.to_svg();
        assert!(svg.contains("a &lt; b"));
        assert_eq!(svg.matches("<path").count(), 1);
        assert_eq!(svg.matches("<circle").count(), 2);
        let scales = Scales::of(&chart);
        assert_eq!((scales.x(1.0), scales.x(128.0)), (LEFT, WIDTH - RIGHT));
        assert_eq!((scales.y(0.5), scales.y(128.0)), (HEIGHT - BOTTOM, TOP));
    }
}
