//! The gate: what was looked for, and how well rows hide among others.

use std::fmt::Write as _;

use serde_json::Value;

use super::figures::{count, percent};
use super::words::{self, Text};
use super::{Lang, Page, code, escape, fill};

impl Page<'_> {
    pub(super) fn gate(&self) -> String {
        if !self.at("/gate").is_some_and(Value::is_object) {
            return self.section(words::GATE, &format!("<p>{}</p>\n", self.t(words::GATE_MISSING)));
        }
        let accepted = match self.list("/gate/accepted") {
            None => self.missing(),
            Some(list) if list.is_empty() => self.t(words::ACCEPTED_NONE),
            Some(list) => {
                let items =
                    list.iter().map(|f| format!("<li>{}</li>", f.as_str().map_or_else(|| self.missing(), |f| self.finding(f))));
                format!("<ul>{}</ul>", items.collect::<String>())
            }
        };
        let facts = [
            (words::ORIGINALS, self.text("/gate/originals")),
            (words::TOO_SHORT, self.text("/gate/too_short")),
            (words::PLACEHOLDERS, self.text("/gate/placeholders")),
            (words::ACCEPTED, accepted),
        ];
        let (what, blind) = (self.t(words::GATE_FOR), self.t(words::GATE_BLIND));
        self.section(words::GATE, &format!("<p>{what}</p>\n{}<p class=\"soft\">{blind}</p>\n", self.pairs(&facts)))
    }

    /// A finding in the page's language; as the tool wrote it where its form is not known.
    pub(super) fn finding(&self, raw: &str) -> String {
        let Some(finding) = Finding::parse(raw) else { return format!("<span lang=\"en\">{}</span>", code(raw)) };
        let cells = if finding.cells == 1 { words::CELL } else { words::CELLS };
        let mut values = vec![
            (
                "what",
                words::FINDINGS
                    .iter()
                    .find(|f| f.of(Lang::En) == finding.what)
                    .map_or_else(|| escape(finding.what), |f| self.t(*f)),
            ),
            ("cells", fill(&self.t(cells), &[("n", count(finding.cells, self.lang))])),
        ];
        let Some((column, record)) = finding.place else { return fill(&self.t(words::FOUND_HEADER), &values) };
        values.extend([("column", code(column)), ("record", count(record, self.lang))]);
        fill(&self.t(words::FOUND), &values)
    }

    pub(super) fn risk(&self) -> String {
        let body = match self.at("/gate/risk") {
            Some(Value::Null) => format!("<p>{}</p>\n", self.t(words::RISK_NONE)),
            Some(Value::Object(_)) => self.risk_figures(),
            _ => format!("<p>{}</p>\n", self.t(words::RISK_MISSING)),
        };
        self.section(words::RISK, &body)
    }

    fn risk_figures(&self) -> String {
        let r = |name: &str| format!("/gate/risk/{name}");
        let number = |name: &str| self.at(&r(name)).and_then(Value::as_f64);
        let mut facts = vec![
            (words::QUASI, self.names(&r("quasi"))),
            (words::ROWS, self.text(&r("rows"))),
            (words::GROUPS, self.text(&r("groups"))),
        ];
        facts.push((words::SENSITIVE, self.optional(&r("sensitive"), words::SENSITIVE_NONE)));
        let mut unique = self.text(&r("unique_rows"));
        if let (Some(n), Some(rows)) = (number("unique_rows"), number("rows").filter(|rows| *rows > 0.0)) {
            let _ = write!(unique, " ({})", percent(n / rows, self.lang));
        }
        let judged = |limit: Option<String>, bound: Text, name: &str| match limit {
            None => self.t(words::NO_THRESHOLD),
            Some(limit) => {
                let bound = fill(&self.t(bound), &[("n", limit)]);
                match self.met(name) {
                    Some(true) => format!("{bound}: {}", self.t(words::MET)),
                    Some(false) => format!("{bound}: <strong>{}</strong>", self.t(words::NOT_MET)),
                    None => bound,
                }
            }
        };
        let whole = |name: &str| self.at(&r(name)).and_then(Value::as_u64).map(|n| count(n, self.lang));
        let share = number("thresholds/max_unique_share").map(|x| percent(x, self.lang));
        let colon = |text: String| if self.lang == Lang::Fr { text.replace(": ", "\u{a0}: ") } else { text };
        let mut rows = vec![
            vec![
                self.t(words::K_MIN),
                self.text(&r("k_min")),
                colon(judged(whole("thresholds/min_k"), words::AT_LEAST, "k_min")),
            ],
            vec![self.t(words::UNIQUE), unique, colon(judged(share, words::AT_MOST, "unique_rows"))],
        ];
        if matches!(self.at(&r("sensitive")), Some(Value::String(_))) {
            rows.push(vec![
                self.t(words::L_MIN),
                self.text(&r("l_min")),
                colon(judged(whole("thresholds/min_l"), words::AT_LEAST, "l_min")),
            ]);
        }
        let table = self.table("", words::RISK_CAPTION, &[words::FIGURE, words::MEASURED, words::THRESHOLD], &rows, 1..2);
        format!("<p>{}</p>\n{}{table}{}", self.t(words::RISK_WHAT), self.pairs(&facts), self.distribution())
    }

    /// The plot of rows by size of group, and the same as a table.
    fn distribution(&self) -> String {
        let bars: Vec<Bar> = self.list("/gate/risk/distribution").into_iter().flatten().filter_map(Bar::read).collect();
        if bars.is_empty() {
            return format!("<p>{}: {}</p>\n", self.t(words::K_CAPTION), self.missing());
        }
        let total = self
            .at("/gate/risk/rows")
            .and_then(Value::as_u64)
            .unwrap_or_else(|| bars.iter().map(|b| b.rows).fold(0, u64::saturating_add));
        let share = |rows: u64| if total == 0 { "–".to_owned() } else { percent(rows as f64 / total as f64, self.lang) };
        let min_k = self.at("/gate/risk/thresholds/min_k").and_then(Value::as_u64);
        let low = |bar: &Bar| bar.to.is_some_and(|to| to < min_k.unwrap_or(2));
        let most = bars.iter().map(|b| b.rows).max().unwrap_or(0).max(1);
        let height = bars.len() * 28 + 26;
        let mut svg = format!(
            "<svg viewBox=\"0 0 420 {height}\" role=\"img\" aria-labelledby=\"plot-title plot-desc\">\n<title id=\"plot-title\">{}</title>\n\
             <desc id=\"plot-desc\">{}</desc>\n<defs><pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" \
             patternTransform=\"rotate(45)\"><rect width=\"6\" height=\"6\" fill=\"#8f1d1d\"></rect><rect width=\"2\" height=\"6\" fill=\"#d98a86\"></rect>\
             </pattern></defs>\n",
            self.t(words::PLOT_TITLE),
            self.t(words::PLOT_DESC),
        );
        let values: Vec<_> = bars.iter().map(|b| format!("{} ({})", count(b.rows, self.lang), share(b.rows))).collect();
        let longest = values.iter().map(|v| v.chars().count()).max().unwrap_or(0);
        // What the figures beside the bars leave, at 7.4 units a character.
        let room = (346.0 - 7.4 * longest as f64).max(60.0);
        for (i, (bar, value)) in bars.iter().zip(&values).enumerate() {
            let (y, base) = (i * 28 + 4, i * 28 + 19);
            let width = (bar.rows as f64 / most as f64 * room).max(if bar.rows > 0 { 1.5 } else { 0.0 });
            let (paint, label) = (if low(bar) { "url(#hatch)" } else { "#1f4e79" }, bar.label(self.lang, true));
            let _ = writeln!(
                svg,
                "<text x=\"58\" y=\"{base}\" text-anchor=\"end\">{label}</text>\
                 <rect x=\"66\" y=\"{y}\" width=\"{width:.1}\" height=\"20\" fill=\"{paint}\"></rect>\
                 <text x=\"{:.1}\" y=\"{base}\">{value}</text>",
                72.0 + width,
            );
        }
        let foot = bars.len() * 28;
        let _ = write!(
            svg,
            "<line x1=\"66\" y1=\"0\" x2=\"66\" y2=\"{foot}\" stroke=\"#1b2127\"></line>\n<text x=\"66\" y=\"{}\">{}</text>\n</svg>",
            foot + 18,
            self.t(words::PLOT_AXIS),
        );
        let legend = match (bars.iter().any(low), min_k) {
            (false, _) => String::new(),
            (true, None | Some(0..=2)) => format!("<p>{}</p>", self.t(words::PLOT_UNIQUE)),
            (true, Some(k)) => format!("<p>{}</p>", fill(&self.t(words::PLOT_LOW), &[("n", count(k, self.lang))])),
        };
        let rows = bars.iter().map(|b| vec![b.label(self.lang, false), count(b.rows, self.lang), share(b.rows)]);
        let table = self.table("", words::K_CAPTION, &[words::K, words::ROWS, words::SHARE], &rows.collect::<Vec<_>>(), 1..3);
        format!(
            "<div class=\"pair\">\n<figure>\n<figcaption>{}</figcaption>\n{svg}\n{legend}</figure>\n{table}</div>\n",
            self.t(words::PLOT_TITLE)
        )
    }
}

/// A bar of the distribution: rows in groups of `k` to `to`.
struct Bar {
    k: u64,
    /// None where it has no upper end.
    to: Option<u64>,
    rows: u64,
}

impl Bar {
    fn read(value: &Value) -> Option<Self> {
        let number = |name: &str| value.get(name).and_then(Value::as_u64);
        let k = number("k")?;
        let to = match value.get("to") {
            None => Some(k),
            Some(to) => to.as_u64(),
        };
        Some(Self { k, to, rows: number("rows")? })
    }

    fn label(&self, lang: Lang, short: bool) -> String {
        let k = count(self.k, lang);
        match self.to {
            Some(to) if to == self.k => k,
            Some(to) => format!("{k}–{}", count(to, lang)),
            None if short => format!("≥\u{a0}{k}"),
            None => fill(&words::AND_MORE.typeset(lang), &[("n", k)]),
        }
    }
}

/// A finding of the leak check, read from its sentence in the manifest.
struct Finding<'t> {
    what: &'t str,
    cells: u64,
    /// Column and first record; none for the header.
    place: Option<(&'t str, u64)>,
}

impl<'t> Finding<'t> {
    fn parse(raw: &'t str) -> Option<Self> {
        let (head, record) = match raw.strip_prefix("header: ") {
            Some(rest) => (rest, None),
            None => raw.rsplit_once(", first in record ").map(|(head, n)| (head, Some(n)))?,
        };
        let (head, cells) = head.rsplit_once(" in ")?;
        let cells = cells.strip_suffix(" cells").or_else(|| cells.strip_suffix(" cell"))?.parse().ok()?;
        let Some(record) = record else { return Some(Self { what: head, cells, place: None }) };
        let (column, what) = head.strip_prefix("column \"")?.rsplit_once("\": ")?;
        Some(Self { what, cells, place: Some((column, record.parse().ok()?)) })
    }
}
