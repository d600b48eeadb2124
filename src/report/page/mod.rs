//! The report for a data protection officer: one page of HTML from a manifest, without script and without anything from outside.
//! It says what the manifest says, and "not recorded" where it says nothing; it verifies neither files nor signatures.

mod facts;
mod figures;
mod gate;
mod loan;
mod words;

use std::fmt::Write as _;
use std::net::IpAddr;

use serde_json::Value;

use figures::{Instant, count, duration, size};
pub use words::Lang;
use words::Text;

const STYLE: &str = include_str!("report.css");
/// Longest text of a manifest that is shown in full, in characters.
const CLIP: usize = 2000;
/// The line of the README by which anybody can make a pseudonym.
const PYTHON: &str = r#"hmac.new(os.environ["HMASK_KEY"].encode(), value.encode(), hashlib.sha256).hexdigest()[:16]"#;
const VERIFY: &str = "hmask verify MANIFEST.json --input FILE --output FILE";

/// The report of one run: a whole HTML document. Any value is taken for a manifest; what it lacks is called "not recorded".
pub fn render(manifest: &Value, lang: Lang) -> String {
    let page = Page { manifest, lang, verdict: Verdict::of(manifest) };
    let title = page.t(words::TITLE);
    let name = match page.at("/input/name") {
        Some(Value::String(name)) => format!(" – {}", escape(name)),
        _ => String::new(),
    };
    let heading = match page.at("/input/name") {
        Some(Value::String(name)) => format!("{title}: <code><bdi>{}</bdi></code>", escape(name)),
        _ => title.clone(),
    };
    let heading = if lang == Lang::Fr { heading.replacen(": <code>", "\u{a0}: <code>", 1) } else { heading };
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"{}\">\n<head>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; style-src 'unsafe-inline'\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"robots\" content=\"noindex\">\n<title>{title}{name}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <header>\n<h1>{heading}</h1>\n<p class=\"lede\">{}</p>\n</header>\n<main>\n",
        lang.tag(),
        page.t(words::LEDE),
    );
    let parts = [Page::verdict, Page::points, Page::facts, Page::columns, Page::key, Page::gate, Page::risk, Page::loan];
    for part in parts.into_iter().chain([Page::remains, Page::check, Page::mapping, Page::sign]) {
        out.push_str(&part(&page));
    }
    let footer = [("task", page.code("/task")), ("tool", page.text("/tool"))];
    out.push_str(&format!("</main>\n<footer><p>{}</p></footer>\n</body>\n</html>\n", fill(&page.t(words::FOOTER), &footer)));
    out
}

/// What became of the loan, as far as the manifest tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// Lent, deleted, looked for and not found.
    Gone,
    /// Nothing was lent.
    Masked,
    /// Something was not confirmed as deleted.
    Live,
    /// The manifest does not say enough for any of these.
    Unknown,
}

impl Verdict {
    fn of(manifest: &Value) -> Self {
        let loan = match manifest.get("loan") {
            Some(Value::Null) => return Self::Masked,
            Some(Value::Object(loan)) => loan,
            _ => return Self::Unknown,
        };
        match (loan.get("may_be_live"), loan.get("confirmed_gone")) {
            (Some(Value::Array(live)), Some(Value::Array(gone))) if live.is_empty() && !gone.is_empty() => Self::Gone,
            (Some(Value::Array(live)), _) if !live.is_empty() => Self::Live,
            _ => Self::Unknown,
        }
    }
}

struct Page<'m> {
    manifest: &'m Value,
    lang: Lang,
    verdict: Verdict,
}

/// What the manifest says.
impl<'m> Page<'m> {
    fn t(&self, text: Text) -> String {
        text.typeset(self.lang)
    }

    fn at(&self, pointer: &str) -> Option<&'m Value> {
        self.manifest.pointer(pointer)
    }

    fn list(&self, pointer: &str) -> Option<&'m Vec<Value>> {
        self.at(pointer)?.as_array()
    }

    fn missing(&self) -> String {
        format!("<em>{}</em>", self.t(words::MISSING))
    }

    /// A number or text as it is; anything else is not recorded.
    fn show(&self, value: Option<&Value>) -> String {
        match value {
            Some(Value::String(text)) => format!("<bdi>{}</bdi>", escape(text)),
            Some(Value::Bool(yes)) => self.t(if *yes { words::YES } else { words::NO }),
            Some(value @ Value::Number(n)) => value.as_u64().map_or_else(|| escape(&n.to_string()), |n| count(n, self.lang)),
            _ => self.missing(),
        }
    }

    fn text(&self, pointer: &str) -> String {
        self.show(self.at(pointer))
    }

    fn code(&self, pointer: &str) -> String {
        self.at(pointer).and_then(Value::as_str).map_or_else(|| self.missing(), code)
    }

    /// A text that may be null on purpose.
    fn optional(&self, pointer: &str, null: Text) -> String {
        if self.at(pointer) == Some(&Value::Null) { self.t(null) } else { self.text(pointer) }
    }

    fn seconds(&self, pointer: &str) -> String {
        self.at(pointer).and_then(Value::as_u64).map_or_else(|| self.missing(), |n| duration(n, self.lang))
    }

    fn instant(&self, pointer: &str) -> Option<Instant> {
        Instant::parse(self.at(pointer)?.as_str()?)
    }

    fn time(&self, pointer: &str) -> String {
        self.instant(pointer).map_or_else(|| self.text(pointer), |time| time.text(self.lang))
    }

    /// Names of columns, or ids, in one line.
    fn names(&self, pointer: &str) -> String {
        match self.list(pointer) {
            None => self.missing(),
            Some(names) if names.is_empty() => self.t(words::NONE),
            Some(names) => {
                names.iter().map(|n| n.as_str().map_or_else(|| self.show(Some(n)), code)).collect::<Vec<_>>().join(", ")
            }
        }
    }

    /// How many entries a list has.
    fn number(&self, pointer: &str) -> String {
        self.list(pointer).map_or_else(|| self.missing(), |list| count(list.len() as u64, self.lang))
    }

    fn items(&self, pointer: &str) -> String {
        let items = self.list(pointer).into_iter().flatten();
        let items = items.map(|i| ["<li>", &i.as_str().map_or_else(|| self.show(Some(i)), code), "</li>"].concat());
        format!("<ul>{}</ul>", items.collect::<String>())
    }

    /// Columns whose treatment is one of those asked for.
    fn treated(&self, wanted: impl Fn(&str) -> bool) -> u64 {
        let columns = self.list("/columns").into_iter().flatten();
        columns.filter(|c| c.get("treatment").and_then(Value::as_str).is_some_and(|t| wanted(kind(t).0))).count() as u64
    }

    /// Whether a threshold of the policy is met, where both it and the figure are recorded.
    fn met(&self, figure: &str) -> Option<bool> {
        let float = |name: &str| self.at(&format!("/gate/risk/{name}")).and_then(Value::as_f64);
        match figure {
            "k_min" => Some(float("k_min")? >= float("thresholds/min_k")?),
            "unique_rows" => {
                Some(float("unique_rows")? / float("rows").filter(|rows| *rows > 0.0)? <= float("thresholds/max_unique_share")?)
            }
            _ => Some(float("l_min")? >= float("thresholds/min_l")?),
        }
    }

    /// Whether the manifest tells of a loan, however it ended.
    fn lent(&self) -> bool {
        self.at("/loan").is_some_and(Value::is_object)
    }

    /// Whether the address contacted is one of this machine.
    fn loopback(&self) -> bool {
        let Some(address) = self.at("/loan/recipient").and_then(Value::as_str) else { return false };
        let host = address.split_once("://").map_or(address, |(_, rest)| rest).split(['/', '?', '#']).next().unwrap_or_default();
        let host = match host.strip_prefix('[') {
            Some(six) => six.split(']').next().unwrap_or_default(),
            None => host.split(':').next().unwrap_or_default(),
        };
        host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
    }
}

/// The parts of the page, in its order.
impl Page<'_> {
    pub(super) fn section(&self, title: Text, body: &str) -> String {
        format!("<section>\n<h2>{}</h2>\n{body}</section>\n", self.t(title))
    }

    pub(super) fn pairs(&self, pairs: &[(Text, String)]) -> String {
        let pairs = pairs.iter().map(|(name, value)| format!("<dt>{}</dt><dd>{value}</dd>\n", self.t(*name)));
        format!("<dl>\n{}</dl>\n", pairs.collect::<String>())
    }

    pub(super) fn hash(&self, pointer: &str) -> String {
        format!("<span class=\"hash\"><span class=\"soft\">SHA‑256</span> {}</span>", self.code(pointer))
    }

    pub(super) fn file(&self, pointer: &str) -> String {
        let name = format!("{pointer}/name");
        let name = if self.at(&name) == Some(&Value::Null) { self.t(words::NO_NAME) } else { self.code(&name) };
        let bytes = self.at(&format!("{pointer}/bytes")).and_then(Value::as_u64);
        let bytes = bytes.map_or_else(|| self.missing(), |n| size(n, self.lang));
        format!("{name}, {bytes}{}", self.hash(&format!("{pointer}/sha256")))
    }

    /// A table whose first column is its row heads; `numeric` columns stand to the right.
    pub(super) fn table(
        &self,
        class: &str,
        caption: Text,
        heads: &[Text],
        rows: &[Vec<String>],
        numeric: std::ops::Range<usize>,
    ) -> String {
        let colon = if self.lang == Lang::Fr { "\u{a0}:" } else { ":" };
        let align = |i: usize| if numeric.contains(&i) { " class=\"num\"" } else { "" };
        let heads: Vec<_> = heads.iter().map(|head| self.t(*head)).collect();
        let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
        // The roles are said again because a narrow screen shows the rows as blocks, which would hide that it is a table.
        let mut out = format!(
            "<table{class} role=\"table\">\n<caption>{}</caption>\n<thead role=\"rowgroup\"><tr role=\"row\">",
            self.t(caption)
        );
        for (i, head) in heads.iter().enumerate() {
            let _ = write!(out, "<th scope=\"col\" role=\"columnheader\"{}>{head}</th>", align(i));
        }
        out.push_str("</tr></thead>\n<tbody role=\"rowgroup\">\n");
        for row in rows {
            out.push_str("<tr role=\"row\">");
            for (i, cell) in row.iter().enumerate() {
                let _ = match (i, heads.get(i)) {
                    (0, _) => write!(out, "<th scope=\"row\" role=\"rowheader\">{cell}</th>"),
                    (_, Some(head)) => write!(out, "<td role=\"cell\" data-label=\"{head}{colon}\"{}>{cell}</td>", align(i)),
                    (_, None) => write!(out, "<td role=\"cell\">{cell}</td>"),
                };
            }
            out.push_str("</tr>\n");
        }
        out + "</tbody>\n</table>\n"
    }
}

/// `truncate:3` is `truncate` and `3`.
fn kind(text: &str) -> (&str, &str) {
    text.split_once(':').unwrap_or((text, ""))
}

/// A tick or a bar in a circle. The text beside it says the same.
fn mark(done: bool) -> &'static str {
    if done {
        "<svg viewBox=\"0 0 24 24\" aria-hidden=\"true\"><circle cx=\"12\" cy=\"12\" r=\"10\" fill=\"#1c6b40\"></circle>\
         <path d=\"M7 12.5l3.5 3.5L17 9\" fill=\"none\" stroke=\"#fff\" stroke-width=\"2.2\"></path></svg>"
    } else {
        "<svg viewBox=\"0 0 24 24\" aria-hidden=\"true\"><circle cx=\"12\" cy=\"12\" r=\"9\" fill=\"#fff\" stroke=\"#8f1d1d\" stroke-width=\"2.2\"></circle>\
         <path d=\"M12 6.5v7M12 16v2\" fill=\"none\" stroke=\"#8f1d1d\" stroke-width=\"2.2\"></path></svg>"
    }
}

fn code(text: &str) -> String {
    format!("<code><bdi>{}</bdi></code>", escape(text))
}

/// Text of a manifest as text of HTML, in an attribute too. Control characters and those that turn the direction of writing are
/// shown by their numbers, so that a name cannot dress up the page; what is too long is cut.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (i, c) in text.chars().enumerate() {
        if i == CLIP {
            out.push('…');
            break;
        }
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(' '),
            c if c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

/// Puts values into `{name}`, in one pass, so that braces of a value stay what they are. Values are HTML.
fn fill(template: &str, values: &[(&str, String)]) -> String {
    let mut out = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let value = after.split_once('}').and_then(|(name, after)| Some((&values.iter().find(|v| v.0 == name)?.1, after)));
        if let Some((value, after)) = value {
            out.push_str(value);
            rest = after;
        } else {
            out.push('{');
            rest = after;
        }
    }
    out + rest
}
#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const BOTH: [Lang; 2] = [Lang::En, Lang::Fr];

    fn lent() -> Value {
        serde_json::from_str(include_str!("../../../fixtures/manifests/lent.json")).unwrap()
    }

    fn trials() -> Vec<Value> {
        let masked = serde_json::from_str(include_str!("../../../fixtures/manifests/masked.json")).unwrap();
        let live = serde_json::from_str(include_str!("../../../fixtures/manifests/live.json")).unwrap();
        vec![
            lent(),
            masked,
            live,
            json!(null),
            json!({}),
            json!([1]),
            json!({"loan": {}, "gate": {"risk": {}}, "columns": [{}, 3]}),
        ]
    }

    /// Each tag that opens is closed, in order; void elements excepted.
    fn balanced(html: &str) {
        let mut open = Vec::new();
        let mut rest = html;
        while let Some((_, after)) = rest.split_once('<') {
            let (tag, after) = after.split_once('>').expect("an unfinished tag");
            rest = after;
            let name = tag.split([' ', '\n']).next().unwrap();
            match name.strip_prefix('/') {
                Some(name) => assert_eq!(open.pop(), Some(name), "{tag}"),
                None if matches!(name, "!DOCTYPE" | "meta" | "br") => {}
                None => {
                    assert!(!tag.ends_with('/'), "{tag}");
                    assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
                    open.push(name);
                }
            }
            if name == "style" {
                rest = &rest[rest.find("</style").unwrap()..];
            }
        }
        assert_eq!(open, Vec::<&str>::new());
    }

    /// Calls `change` for every value within.
    fn each_string(value: &mut Value, change: &mut impl FnMut(&mut String)) {
        match value {
            Value::String(text) => change(text),
            Value::Array(items) => items.iter_mut().for_each(|v| each_string(v, change)),
            Value::Object(items) => items.values_mut().for_each(|v| each_string(v, change)),
            _ => {}
        }
    }

    #[test]
    fn tags_are_balanced_and_nothing_is_loaded() {
        for (manifest, lang) in trials().iter().flat_map(|m| BOTH.map(|lang| (m, lang))) {
            let html = render(manifest, lang);
            balanced(&html);
            for word in
                [" src=", " href=", "<link", "<script", "<img", "<iframe", "@import", "url(http", "javascript:", "onload="]
            {
                assert!(!html.contains(word), "{word}");
            }
            assert_eq!(html.matches("url(").count(), html.matches("url(#hatch)").count());
            assert!(html.contains(&format!("<html lang=\"{}\">", lang.tag())));
            for brace in ["{n}", "{to}", "{risk}", "{tokens}", "{time}", "{end}"] {
                assert!(!html.contains(brace), "{brace}");
            }
        }
    }

    #[test]
    fn everything_of_the_manifest_is_escaped() {
        let evil = "<script>alert(\"1\")</script>'{n}&\u{202e}\u{0}";
        for mut manifest in trials() {
            each_string(&mut manifest, &mut |text| text.push_str(evil));
            for lang in BOTH {
                let html = render(&manifest, lang);
                balanced(&html);
                assert!(!html.contains("<script") && !html.contains('\u{202e}') && !html.contains('\0'));
            }
        }
        let mut manifest = lent();
        manifest["columns"][0]["name"] = evil.into();
        let shown = "&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&#39;{n}&amp;\\u{202e}\\u{0}";
        assert!(BOTH.iter().all(|lang| render(&manifest, *lang).contains(shown)));
    }

    #[test]
    fn missing_fields_are_said_to_be_missing() {
        fn paths(value: &Value, at: &str, out: &mut Vec<String>) {
            let Value::Object(items) = value else { return };
            for (name, value) in items {
                out.push(format!("{at}/{name}"));
                paths(value, &format!("{at}/{name}"), out);
            }
        }
        let mut all = Vec::new();
        paths(&lent(), "", &mut all);
        assert!(all.len() > 40);
        for path in all {
            let (parent, name) = path.rsplit_once('/').unwrap();
            for value in [
                None,
                Some(json!(null)),
                Some(json!("x")),
                Some(json!(-1.5)),
                Some(json!([])),
                Some(json!({})),
                Some(json!(u64::MAX)),
            ] {
                let mut manifest = lent();
                let parent = manifest.pointer_mut(parent).unwrap().as_object_mut().unwrap();
                let gone = value.is_none();
                match value {
                    None => parent.remove(name),
                    Some(value) => parent.insert(name.to_owned(), value),
                };
                for lang in BOTH {
                    let html = render(&manifest, lang);
                    balanced(&html);
                    let silent = [
                        "/version",
                        "/gate/risk/thresholds",
                        "/gate/risk/thresholds/min_k",
                        "/gate/risk/thresholds/max_unique_share",
                    ];
                    if gone && !silent.contains(&path.as_str()) {
                        assert!(html.to_lowercase().contains(&words::MISSING.typeset(lang)), "{path}");
                    }
                }
            }
        }
        assert!(!render(&lent(), Lang::En).contains("not recorded"));
        let claims = ["was searched for", "Masked only", "confirmed gone."];
        assert!(claims.iter().all(|claim| !render(&json!({}), Lang::En).contains(claim)));
    }

    #[test]
    fn the_verdict_is_green_only_for_what_is_confirmed() {
        let gone = |manifest: &Value| render(manifest, Lang::En).contains("class=\"verdict gone\"");
        assert!(gone(&lent()));
        for loan in [
            json!({}),
            json!(true),
            json!({"may_be_live": []}),
            json!({"may_be_live": [], "confirmed_gone": []}),
            json!({"confirmed_gone": ["a"]}),
            json!({"may_be_live": "a", "confirmed_gone": ["a"]}),
            json!({"may_be_live": ["a"], "confirmed_gone": ["b"]}),
        ] {
            let mut manifest = lent();
            manifest["loan"] = loan;
            assert!(!gone(&manifest) && !render(&manifest, Lang::En).contains("class=\"verdict masked\""));
        }
        let mut manifest = lent();
        manifest["loan"] = json!(null);
        assert!(render(&manifest, Lang::Fr).contains("class=\"verdict masked\""));
        manifest["loan"] = json!({"may_be_live": ["upload <file>"], "expiry_granted": 3600});
        let html = render(&manifest, Lang::Fr);
        assert!(
            html.contains("class=\"verdict live\"")
                && html.contains("upload &lt;file&gt;")
                && html.contains("22\u{a0}h\u{a0}00\u{a0}min\u{a0}41")
        );
    }

    #[test]
    fn addresses_of_this_machine() {
        for (address, here) in [
            ("http://127.0.0.1:8080", true),
            ("http://[::1]:8080/v1", true),
            ("http://localhost", true),
            ("https://api.openai.com", false),
            ("http://127.0.0.1.example.org", false),
            ("http://127.0.0.1@example.org", false),
        ] {
            let manifest = json!({"loan": {"recipient": address}});
            assert_eq!(Page { manifest: &manifest, lang: Lang::En, verdict: Verdict::Unknown }.loopback(), here, "{address}");
        }
    }

    #[test]
    fn findings_are_translated() {
        let manifest = json!({"gate": {"accepted": ["column \"a \\\"in\\\" b\": e-mail address in 1200 cells, first in record 7", "header: IBAN in 1 cell", "new form"]}});
        let html = render(&manifest, Lang::Fr);
        assert!(html.contains("adresse électronique, 1\u{202f}200\u{a0}cellules, première occurrence à l’enregistrement 7"));
        assert!(html.contains("en-tête\u{a0}: IBAN, 1\u{a0}cellule") && html.contains("<span lang=\"en\"><code><bdi>new form"));
    }

    #[test]
    fn both_languages_have_every_text() {
        let lines = words::GDPR.iter().chain(words::EDPB).flat_map(|l| [l.reference, l.shows, l.open]);
        let texts: Vec<Text> = words::ALL.iter().copied().chain(words::MONTHS).chain(words::FINDINGS).chain(lines).collect();
        let holes = |text: &str| {
            let mut holes: Vec<_> = text.split('{').skip(1).filter_map(|t| t.split_once('}')).map(|t| t.0.to_owned()).collect();
            holes.sort();
            holes
        };
        for text in texts {
            let (en, fr) = (text.of(Lang::En), text.typeset(Lang::Fr));
            assert!(!en.trim().is_empty() && !fr.trim().is_empty());
            assert_eq!(holes(en), holes(&fr), "{en}");
            assert!(en.len() < 20 || en != fr, "{en} is not translated");
            assert!(!en.contains("  ") && !fr.contains("  ") && !en.contains(" :") && !fr.contains('“'), "{en}");
            for mark in [" :", " ;", " ?", " !", "« ", " »"] {
                assert!(!fr.contains(mark), "{fr}");
            }
            balanced(en);
            balanced(&fr);
        }
    }
}
