//! Verdict, points to decide, facts, columns and key.

use std::fmt::Write as _;

use serde_json::Value;

use super::figures::{chance, count, decimal, duration};
use super::words::{self, Text};
use super::{Page, Verdict, code, escape, fill, kind};

impl Page<'_> {
    pub(super) fn verdict(&self) -> String {
        let (class, short, more) = match self.verdict {
            Verdict::Gone => ("gone", words::GONE, words::GONE_MORE),
            Verdict::Masked => ("masked", words::MASKED, words::MASKED_MORE),
            Verdict::Live => ("live", words::LIVE, words::LIVE_MORE),
            Verdict::Unknown => ("unknown", words::UNKNOWN, words::UNKNOWN_MORE),
        };
        let mut out =
            format!("<div class=\"verdict {class}\">\n<p class=\"short\">{}</p>\n<p>{}</p>\n", self.t(short), self.t(more));
        if self.verdict == Verdict::Live {
            let _ = write!(out, "{}\n<p>{}</p>\n", self.items("/loan/may_be_live"), self.t(words::LIVE_DO));
            if let (Some(end), Some(granted)) = (self.instant("/ended"), self.at("/loan/expiry_granted").and_then(Value::as_u64))
            {
                let time = [("time", end.plus(granted).text(self.lang))];
                let _ = writeln!(out, "<p>{}</p>", fill(&self.t(words::LIVE_UNTIL), &time));
            }
        }
        if self.loopback() {
            let _ = writeln!(out, "<p>{}</p>", self.t(words::LOOPBACK));
        }
        let (still, more) = (self.t(words::STILL_PERSONAL), self.t(words::STILL_PERSONAL_MORE));
        out + &format!("</div>\n<p><strong>{still}</strong> {more}</p>\n")
    }

    pub(super) fn points(&self) -> String {
        let number = |n: u64| [("n", count(n, self.lang))];
        let null = Some(&Value::Null);
        let mut points = Vec::new();
        let mut point = |applies: bool, text: Text, n: u64| {
            if applies {
                points.push(format!("<li>{}</li>", fill(&self.t(text), &number(n))));
            }
        };
        let accepted = self.list("/gate/accepted").map_or(0, |list| list.len() as u64);
        let unique = self.at("/gate/risk/unique_rows").and_then(Value::as_u64).unwrap_or(0);
        point(self.at("/purpose") == null, words::POINT_PURPOSE, 0);
        point(self.lent() && self.at("/recipient") == null, words::POINT_RECIPIENT, 0);
        point(self.list("/columns").is_some() && self.treated(|t| t == "pseudonym") == 0, words::POINT_NO_TOKEN, 0);
        point(accepted > 0, words::POINT_ACCEPTED, accepted);
        point(self.at("/gate/risk") == null, words::POINT_RISK, 0);
        point(unique > 0, words::POINT_UNIQUE, unique);
        point(["k_min", "unique_rows", "l_min"].iter().any(|f| self.met(f) == Some(false)), words::POINT_THRESHOLD, 0);
        point(self.at("/loan/answered") == Some(&Value::Bool(false)), words::POINT_ANSWER, 0);
        if points.is_empty() {
            return String::new();
        }
        format!("<section>\n<h2>{}</h2>\n<ul>{}</ul>\n</section>\n", self.t(words::POINTS), points.concat())
    }

    pub(super) fn facts(&self) -> String {
        let (lent, masked) = (self.lent(), self.verdict == Verdict::Masked);
        let mut when = fill(&self.t(words::WHEN_SPAN), &[("from", self.time("/started")), ("to", self.time("/ended"))]);
        let ends = self.instant("/started").zip(self.instant("/ended"));
        if let Some(n) = ends.and_then(|(from, to)| from.until(to)) {
            let _ = write!(when, " ({})", fill(&self.t(words::WHEN_LONG), &[("n", duration(n, self.lang))]));
        }
        let endpoint = if masked { self.t(words::ENDPOINT_NONE) } else { self.code("/loan/recipient") };
        let policy = match self.at("/policy") {
            Some(Value::Null) => self.t(words::NO_POLICY),
            Some(Value::Object(_)) => format!("{}{}", self.code("/policy/name"), self.hash("/policy/sha256")),
            _ => self.missing(),
        };
        let mut facts = vec![
            (words::RECIPIENT, self.optional("/recipient", words::NO_RECIPIENT)),
            (words::ENDPOINT, endpoint),
            (words::PURPOSE, self.optional("/purpose", words::NO_PURPOSE)),
            (words::WHEN, when),
            (words::ROWS, self.text("/rows")),
            (words::INPUT, self.file("/input")),
            (if lent { words::OUTPUT_SENT } else { words::OUTPUT_MADE }, self.file("/output")),
        ];
        if self.at("/where").is_some_and(Value::is_string) {
            facts.insert(5, (words::CHOSEN, self.code("/where")));
        }
        if lent {
            facts.push((words::REMOTE_NAME, self.code("/loan/remote_name")));
        }
        facts.extend([(words::POLICY, policy), (words::TOOL, self.text("/tool")), (words::TASK, self.code("/task"))]);
        let note = if lent { format!("<p class=\"soft\">{}</p>\n", self.t(words::ONLY_TABLE)) } else { String::new() };
        let title = match (lent, masked) {
            (true, _) => words::SENT,
            (_, true) => words::MADE,
            _ => words::RUN,
        };
        self.section(title, &(self.pairs(&facts) + &note))
    }

    pub(super) fn columns(&self) -> String {
        let columns = self.list("/columns").filter(|columns| !columns.is_empty());
        let table = match columns {
            None => format!("<p>{}</p>\n", self.t(words::NO_COLUMNS)),
            Some(columns) => {
                let heads = [
                    words::COLUMN,
                    words::TREATMENT,
                    words::NORMALISE,
                    words::VALUES,
                    words::ABSENT,
                    words::DISTINCT,
                    words::COLLISION,
                ];
                let rows = columns.iter().map(|c| self.column(c)).collect::<Vec<_>>();
                self.table("stack columns", words::COLUMNS_CAPTION, &heads, &rows, 3..6)
                    + &format!("<p class=\"soft\">{}</p>\n", self.t(words::COLUMNS_NOTE))
            }
        };
        let others = [
            (words::DROPPED, self.names("/dropped")),
            (words::KEPT, self.names("/kept")),
            (words::UNICODE, self.at("/unicode").and_then(Value::as_str).map_or_else(|| self.missing(), escape)),
        ];
        let kept = match self.list("/kept") {
            Some(kept) if !kept.is_empty() => format!("<p class=\"soft\">{}</p>\n", self.t(words::KEPT_NOTE)),
            _ => String::new(),
        };
        self.section(words::HOW, &(table + &self.pairs(&others) + &kept))
    }

    fn column(&self, column: &Value) -> Vec<String> {
        let get = |name: &str| column.get(name);
        let treatment =
            get("treatment").and_then(Value::as_str).map_or_else(|| self.missing(), |t| self.treatment(t, get("digits")));
        let domain = match get("domain").and_then(Value::as_str) {
            Some(domain) if !domain.is_empty() => {
                format!("<br><span class=\"soft\">{} {}</span>", self.t(words::DOMAIN), code(domain))
            }
            _ => String::new(),
        };
        let normalise = match get("normalise") {
            Some(Value::Array(steps)) if steps.is_empty() => "–".to_owned(),
            Some(Value::Array(steps)) => {
                steps.iter().map(|s| s.as_str().map_or_else(|| self.missing(), |s| self.normal(s))).collect::<Vec<_>>().join(", ")
            }
            _ => self.missing(),
        };
        let collision = match get("collision_chance") {
            Some(Value::Null) => "–".to_owned(),
            value => value.and_then(Value::as_f64).map_or_else(|| self.missing(), |p| chance(p, self.lang)),
        };
        let distinct = if get("distinct") == Some(&Value::Null) { "–".to_owned() } else { self.show(get("distinct")) };
        let name = get("name").and_then(Value::as_str).map_or_else(|| self.missing(), code);
        vec![name, treatment + &domain, normalise, self.show(get("masked")), self.show(get("missing")), distinct, collision]
    }

    pub(super) fn treatment(&self, raw: &str, digits: Option<&Value>) -> String {
        let (name, n) = kind(raw);
        let text = match name {
            "pseudonym" => {
                let digits = match digits.and_then(Value::as_u64) {
                    Some(n) => fill(&self.t(words::DIGITS), &[("n", count(n, self.lang))]),
                    None => self.t(words::DIGITS_MISSING),
                };
                return fill(&self.t(words::TREAT_PSEUDONYM), &[("digits", digits)]);
            }
            "keep" => words::TREAT_KEEP,
            "drop" => words::TREAT_DROP,
            "redact" => words::TREAT_REDACT,
            "truncate" => words::TREAT_TRUNCATE,
            "year" => words::TREAT_YEAR,
            "month" => words::TREAT_MONTH,
            "bucket" => words::TREAT_BUCKET,
            "shift" => words::TREAT_SHIFT,
            _ => return code(raw),
        };
        fill(&self.t(text), &[("n", if n.is_empty() { self.missing() } else { self.figure(n) })])
    }

    /// A number that the manifest holds as text.
    pub(super) fn figure(&self, text: &str) -> String {
        text.parse()
            .map_or_else(|_| text.parse().map_or_else(|_| escape(text), |x| decimal(x, 6, self.lang)), |n| count(n, self.lang))
    }

    pub(super) fn normal(&self, raw: &str) -> String {
        let (name, n) = kind(raw);
        let text = match name {
            "trim" => words::NORM_TRIM,
            "nfc" => words::NORM_NFC,
            "lower" => words::NORM_LOWER,
            "email" => words::NORM_EMAIL,
            "phone" => words::NORM_PHONE,
            "digits" => words::NORM_DIGITS,
            "alnum" => words::NORM_ALNUM,
            _ => return code(raw),
        };
        fill(&self.t(text), &[("n", escape(n))])
    }

    pub(super) fn key(&self) -> String {
        let scope = format!("{}<br>{}", self.code("/scope"), self.scope());
        let facts = self.pairs(&[(words::KEY_ID, self.code("/key_id")), (words::SCOPE, scope)]);
        self.section(words::KEY, &format!("{facts}<p>{}</p>\n", self.t(words::KEY_WHERE)))
    }

    pub(super) fn scope(&self) -> String {
        match self.at("/scope").and_then(Value::as_str).map(|scope| kind(scope).0) {
            None => self.missing(),
            Some("stable") => self.t(words::SCOPE_STABLE),
            Some("upload") => self.t(words::SCOPE_UPLOAD),
            Some("recipient") => self.t(words::SCOPE_RECIPIENT),
            Some("project") => self.t(words::SCOPE_PROJECT),
            Some(_) => self.t(words::SCOPE_OTHER),
        }
    }
}
