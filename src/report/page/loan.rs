//! The loan and its end, what remains, how to check the page, and what it means under the GDPR.

use serde_json::Value;

use super::figures::count;
use super::words::{self, Line, Text};
use super::{Lang, PYTHON, Page, VERIFY, Verdict, escape, fill, mark};

impl Page<'_> {
    pub(super) fn loan(&self) -> String {
        if self.verdict == Verdict::Masked {
            return self.section(words::LOAN, &format!("<p>{}</p>\n", self.t(words::LOAN_NONE)));
        }
        if !self.lent() {
            return self.section(words::LOAN, &format!("<p>{}</p>\n", self.t(words::LOAN_MISSING)));
        }
        let answer = [("answer", self.text("/loan/answered"))];
        let expiry = [("asked", self.seconds("/loan/expiry_asked")), ("granted", self.seconds("/loan/expiry_granted"))];
        let time = |pointer: &str| format!("<br><span class=\"soft\">{}</span>", self.time(pointer));
        let mut steps = vec![
            (self.at("/gate").is_some_and(Value::is_object), self.t(words::STEP_MASK) + &time("/started")),
            (
                self.at("/loan/remote_name").is_some_and(Value::is_string),
                fill(&self.t(words::STEP_SEND), &[("name", self.code("/loan/remote_name"))]),
            ),
            (self.at("/loan/expiry_granted").is_some_and(Value::is_u64), fill(&self.t(words::STEP_EXPIRY), &expiry)),
            (self.at("/loan/answered") == Some(&Value::Bool(true)), fill(&self.t(words::STEP_ANSWER), &answer)),
        ];
        if self.list("/loan/confirmed_gone").is_some_and(|gone| !gone.is_empty()) {
            steps.push((true, self.t(words::STEP_GONE) + &self.items("/loan/confirmed_gone")));
        }
        match self.verdict {
            Verdict::Live => steps.push((
                false,
                format!("<span class=\"bad\">{}</span>{}", self.t(words::STEP_LIVE), self.items("/loan/may_be_live")),
            )),
            Verdict::Unknown => steps.push((false, self.t(words::STEP_NO_CONFIRM))),
            Verdict::Gone | Verdict::Masked => {}
        }
        steps.push((self.instant("/ended").is_some(), self.t(words::STEP_END) + &time("/ended")));
        let steps: String =
            steps.iter().map(|(done, step)| ["<li>", mark(*done), "<div>", step, "</div></li>\n"].concat()).collect();
        self.section(
            words::LOAN,
            &format!("<ol class=\"steps\">\n{steps}</ol>\n<p class=\"soft\">{}</p>\n", self.t(words::LOAN_PROOF)),
        )
    }

    pub(super) fn remains(&self) -> String {
        if !self.lent() {
            let text = if self.verdict == Verdict::Masked { words::REMAINS_NONE } else { words::LOAN_MISSING };
            return self.section(words::REMAINS, &format!("<p>{}</p>\n", self.t(text)));
        }
        let what = match self.at("/loan/not_deletable").and_then(Value::as_str) {
            None => self.missing(),
            Some(words::NOT_DELETABLE_RAW) => self.t(words::NOT_DELETABLE),
            Some(other) => format!("<span lang=\"en\">{}</span>", escape(other)),
        };
        self.section(words::REMAINS, &format!("<p><strong>{what}</strong></p>\n<p>{}</p>\n", self.t(words::REMAINS_NOTE)))
    }

    pub(super) fn check(&self) -> String {
        let (verify, python) = (escape(VERIFY), escape(PYTHON));
        let verify =
            if self.lang == Lang::Fr { verify.replace("MANIFEST", "MANIFESTE").replace("FILE", "FICHIER") } else { verify };
        let [intro, hash, by_hand, plain, signed] =
            [words::CHECK_VERIFY, words::CHECK_HASH, words::CHECK_PYTHON, words::CHECK_PLAIN, words::CHECK_SIGNED]
                .map(|text| self.t(text));
        let body = format!(
            "<p>{intro}</p>\n<pre><code>{verify}</code></pre>\n<p>{hash}</p>\n<p>{by_hand}</p>\n<pre><code>{python}</code></pre>\n\
             <p class=\"soft\">{plain}</p>\n<p>{signed}</p>\n"
        );
        self.section(words::CHECK, &body)
    }

    pub(super) fn mapping(&self) -> String {
        let values = self.sentences();
        let table = |caption: Text, head: Text, lines: &[Line]| {
            let row = |l: &Line| vec![self.t(l.reference), fill(&self.t(l.shows), &values), self.t(l.open)];
            let rows: Vec<_> = lines.iter().map(row).collect();
            self.table("stack map", caption, &[head, words::MAP_SHOWS, words::MAP_OPEN], &rows, 0..0)
        };
        let gdpr = table(words::MAP_GDPR, words::MAP_REF, words::GDPR);
        let edpb = table(words::MAP_EDPB, words::MAP_TOPIC, words::EDPB);
        let (note, version) = (self.t(words::MAP_NOTE), self.t(words::MAP_EDPB_NOTE));
        self.section(words::MAP, &format!("<p>{note}</p>\n{gdpr}{edpb}<p class=\"soft\">{version}</p>\n"))
    }

    /// The sentences of the mapping tables that depend on the run.
    fn sentences(&self) -> [(&'static str, String); 8] {
        let treated = |wanted: fn(&str) -> bool| {
            let known = self.list("/columns").is_some();
            if known { count(self.treated(wanted), self.lang) } else { self.missing() }
        };
        let tokens = treated(|t| t == "pseudonym");
        let reduced = treated(|t| !matches!(t, "pseudonym" | "keep" | "drop"));
        let minimal = [
            ("dropped", self.number("/dropped")),
            ("tokens", tokens.clone()),
            ("reduced", reduced),
            ("kept", self.number("/kept")),
        ];
        let (to, end, number) = match self.verdict {
            Verdict::Gone => (words::S_TO, words::S_END_GONE, "/loan/confirmed_gone"),
            Verdict::Live => (words::S_TO, words::S_END_LIVE, "/loan/may_be_live"),
            Verdict::Masked => (words::S_TO_NONE, words::S_END_MASKED, ""),
            Verdict::Unknown if self.lent() => (words::S_TO, words::S_END_UNKNOWN, ""),
            Verdict::Unknown => (words::S_TO_UNKNOWN, words::S_END_UNKNOWN, ""),
        };
        let to_values =
            [("recipient", self.optional("/recipient", words::NO_RECIPIENT)), ("endpoint", self.code("/loan/recipient"))];
        let end_values = [
            ("asked", self.seconds("/loan/expiry_asked")),
            ("granted", self.seconds("/loan/expiry_granted")),
            ("n", self.number(number)),
        ];
        let risk_values = [
            ("n", self.number("/gate/risk/quasi")),
            ("k", self.text("/gate/risk/k_min")),
            ("unique", self.text("/gate/risk/unique_rows")),
        ];
        let risk = if self.at("/gate/risk").is_some_and(Value::is_object) { words::S_RISK } else { words::S_RISK_NONE };
        let check_values = [("n", self.text("/gate/originals")), ("accepted", self.number("/gate/accepted"))];
        [
            ("tokens", fill(&self.t(words::S_TOKENS), &[("n", tokens)])),
            ("key_id", self.at("/key_id").and_then(Value::as_str).map_or_else(|| self.missing(), escape)),
            ("minimal", fill(&self.t(words::S_MINIMAL), &minimal)),
            ("end", fill(&self.t(end), &end_values)),
            ("to", fill(&self.t(to), &to_values)),
            ("risk", fill(&self.t(risk), &risk_values)),
            ("scope", self.scope()),
            ("check", fill(&self.t(words::S_CHECK), &check_values)),
        ]
    }

    pub(super) fn sign(&self) -> String {
        let line = self.t(words::SIGN_LINE);
        let boxes = [words::SIGN_DPO, words::SIGN_CONTROLLER];
        let boxes = boxes.map(|b| format!("<div><p><strong>{}</strong></p><p class=\"soft\">{line}</p></div>\n", self.t(b)));
        self.section(words::SIGN, &format!("<div class=\"sign\">\n{}</div>\n", boxes.concat()))
    }
}
