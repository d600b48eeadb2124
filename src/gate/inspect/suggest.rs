//! A policy to start from: every column with a treatment, and why.

use super::{Class, Profile};

/// A policy for the table of these columns; `source` is how the table is named.
pub fn policy(source: &str, rows: u64, profiles: &[Profile]) -> String {
    let mut out = format!(
        "# A policy to start from, for {}: {rows} rows, {} columns.\n\
         # What was seen are forms and numbers, not meanings: read each line before you rely on it.\n\
         version = 1\n\
         unlisted = \"error\" # a column that is not listed below stops the run; or \"keep\", \"drop\"\n\
         # recipient = \"OpenAI\"\n\
         # purpose = \"\"\n\
         # allow_hosts = [\"api.openai.com\"]\n\n",
        plain(source),
        profiles.len()
    );
    let quasi: Vec<String> = profiles.iter().filter(|p| p.verdict.class == Class::Quasi).map(|p| string(&p.name)).collect();
    out += &format!(
        "# [gate] # what must hold before anything is lent\n# quasi = [{}]\n# min_k = 5\n# max_unique_share = 0.01\n\n[columns]\n",
        quasi.join(", ")
    );
    let mut seen = std::collections::HashSet::new();
    for profile in profiles.iter().filter(|p| p.name != crate::table::rows::BEYOND) {
        let verdict = &profile.verdict;
        let reasons =
            if verdict.reasons.is_empty() { "nothing that identifies was seen".into() } else { verdict.reasons.join("; ") };
        let what = format!("{}, {} values, {} different", profile.kind, profile.values, profile.distinct);
        out += &format!("# {} ({:.0} %): {} ({what})\n", verdict.class.name(), verdict.confidence * 100.0, plain(&reasons));
        if seen.insert(&profile.name) {
            out += &format!("{} = {}\n", string(&profile.name), verdict.suggestion);
        } else {
            out += "# the line above stands for this column of the same name, too\n";
        }
    }
    out
}

/// A text within a comment.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// A text as a basic string of TOML.
fn string(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out += &format!("\\u{:04X}", u32::from(c)),
            c => out.push(c),
        }
    }
    out + "\""
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::inspect::tests::inspect;
    use crate::policy::Policy;

    #[test]
    fn what_is_suggested_is_a_policy_that_lists_every_column() {
        let csv = "email;\"a \"\"b\"\", c\";né(e) le;email;#1\nz@x.fr;1;1985-01-02;y@x.fr;7\n";
        let profiles = inspect(csv.into());
        let text = policy("x\ny.csv", 1, &profiles);
        let policy = Policy::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        for profile in &profiles {
            assert!(policy.is_listed(&profile.name), "{}: {text}", profile.name);
        }
        let key = crate::Key::new("0123456789abcdef".repeat(4).into_bytes()).unwrap();
        let rules = policy.rules(&key, &crate::Scope::Stable, &|_, _| Ok(crate::Form::default())).unwrap();
        let rules = crate::Rules::new(rules, policy.unlisted);
        let job = crate::table::Job { rules: &rules, workers: 1, progress: &|_| {} };
        let options = crate::table::csv::CsvOptions::default();
        crate::table::csv::mask(&mut csv.as_bytes(), &mut Vec::new(), &job, &options).unwrap();
        assert!(!text.contains("z@x.fr") && !text.contains("1985"), "{text}");
    }
}
