//! Numbers, sizes, chances and times as readers of English and French write them. Not here: HTML.

use super::words::{self, Lang};

/// Narrow no-break space: between thousands and before `%` in French.
const THIN: char = '\u{202f}';

/// A whole number with its thousands set apart.
pub(super) fn count(n: u64, lang: Lang) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() * 2);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(if lang == Lang::Fr { THIN } else { ',' });
        }
        out.push(digit);
    }
    out
}

/// A number with at most `places` decimals and no trailing zeros.
pub(super) fn decimal(x: f64, places: usize, lang: Lang) -> String {
    let text = format!("{x:.places$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    if lang == Lang::Fr { text.replace('.', ",") } else { text.to_owned() }
}

/// A share from 0 to 1 in per cent.
pub(super) fn percent(share: f64, lang: Lang) -> String {
    let x = share * 100.0;
    let (sign, text) = match x {
        x if x > 0.0 && x < 0.01 => (words::UNDER.of(lang), decimal(0.01, 2, lang)),
        x if x >= 100.0 => ("", "100".to_owned()),
        // 99.97 is not "100": some rows are outside.
        x if x > 99.9 => (words::OVER.of(lang), decimal(99.9, 1, lang)),
        x => ("", decimal(x, if x < 10.0 { 2 } else { 1 }, lang)),
    };
    if lang == Lang::Fr { format!("{sign}{text}{THIN}%") } else { format!("{sign}{text}%") }
}

/// Bytes, exactly and in round units.
pub(super) fn size(bytes: u64, lang: Lang) -> String {
    let exact = format!("{}\u{a0}{}", count(bytes, lang), words::BYTES.of(lang));
    let units = if lang == Lang::Fr { ["ko", "Mo", "Go", "To"] } else { ["kB", "MB", "GB", "TB"] };
    let Some(unit) = (1..=4).rev().find(|i| bytes >= 1000_u64.pow(*i)) else { return exact };
    let round = decimal(bytes as f64 / 1000_f64.powi(unit.cast_signed()), 1, lang);
    format!("{exact} ({round}\u{a0}{})", units[unit as usize - 1])
}

/// A probability in plain words: "about 1 in 71 billion".
pub(super) fn chance(p: f64, lang: Lang) -> String {
    if p <= 0.0 {
        return words::CHANCE_NONE.of(lang).to_owned();
    }
    if p >= 0.01 {
        return percent(p, lang);
    }
    let n = 1.0 / p;
    if n >= 1e15 {
        return words::CHANCE_TINY.of(lang).to_owned();
    }
    let step = 10_f64.powf(n.log10().floor() - 1.0);
    let n = (n / step).round() * step;
    let fr = lang == Lang::Fr;
    let (unit, name) = match n {
        n if n >= 1e12 && !fr => (1e12, "trillion"),
        n if n >= 1e9 => (
            1e9,
            if !fr {
                "billion"
            } else if n < 2e9 {
                "milliard"
            } else {
                "milliards"
            },
        ),
        n if n >= 1e6 => (1e6, if !fr || n < 2e6 { "million" } else { "millions" }),
        _ => (1.0, ""),
    };
    let n = n / unit;
    let number = if n < 10.0 { decimal(n, 1, lang) } else { count(n.round() as u64, lang) };
    let number = if name.is_empty() { number } else { format!("{number}\u{a0}{name}") };
    words::CHANCE.of(lang).replace("{n}", &number)
}

/// A length of time: `3600` is "1 h", `41` is "41 s".
pub(super) fn duration(seconds: u64, lang: Lang) -> String {
    let parts = [(seconds / 3600, "h"), (seconds / 60 % 60, "min"), (seconds % 60, "s")];
    let mut shown: Vec<_> =
        parts.iter().filter(|p| p.0 > 0).map(|(n, unit)| format!("{}\u{a0}{unit}", count(*n, lang))).collect();
    if shown.is_empty() {
        shown.push("0\u{a0}s".to_owned());
    }
    shown.join("\u{a0}")
}

/// Seconds since 1970 in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Instant(i64);

impl Instant {
    /// Reads `2026-11-29T21:00:00Z`, fractions allowed and dropped; other offsets than `Z` are not read.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let clock = text.strip_suffix('Z')?;
        let number =
            |at: std::ops::Range<usize>| clock.get(at).filter(|s| s.bytes().all(|b| b.is_ascii_digit()))?.parse::<i64>().ok();
        let marks = [(4, '-'), (7, '-'), (10, 'T'), (13, ':'), (16, ':')];
        let fraction = clock.get(19..)?;
        let framed = marks.iter().all(|(at, mark)| clock.get(*at..).is_some_and(|rest| rest.starts_with(*mark)));
        if !framed || !(fraction.is_empty() || fraction.starts_with('.')) {
            return None;
        }
        let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
        let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
        let valid = (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60 && second < 61;
        valid.then(|| Self(days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second))
    }

    /// So many seconds later.
    pub(super) fn plus(self, seconds: u64) -> Self {
        Self(self.0.saturating_add(i64::try_from(seconds.min(1 << 40)).unwrap_or(i64::MAX)))
    }

    /// Seconds from `self` to `later`, if it is later.
    pub(super) fn until(self, later: Self) -> Option<u64> {
        u64::try_from(later.0 - self.0).ok()
    }

    /// Date and time: "29 November 2026, 21:00:41 UTC".
    pub(super) fn text(self, lang: Lang) -> String {
        let (year, month, day) = civil(self.0.div_euclid(86_400));
        let clock = self.0.rem_euclid(86_400);
        let (hour, minute, second) = (clock / 3600, clock / 60 % 60, clock % 60);
        let name = words::MONTHS.get(month as usize - 1).map_or("", |name| name.of(lang));
        match lang {
            Lang::En => format!("{day}\u{a0}{name} {year}, {hour:02}:{minute:02}:{second:02}\u{a0}UTC"),
            Lang::Fr => {
                let first = if day == 1 { "1er".to_owned() } else { day.to_string() };
                format!("{first}\u{a0}{name} {year} à {hour}\u{a0}h\u{a0}{minute:02}\u{a0}min\u{a0}{second:02}\u{a0}s (UTC)")
            }
        }
    }
}

/// Days from 1970-01-01 in the Gregorian calendar (Hinnant, "chrono-Compatible Low-Level Date Algorithms").
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The inverse of [`days`]: year, month, day.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let (day, month) = (of_year - (153 * shifted + 2) / 5 + 1, if shifted < 10 { shifted + 3 } else { shifted - 9 });
    (year + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!((count(1_234_567, Lang::En), count(25_000, Lang::Fr)), ("1,234,567".into(), "25\u{202f}000".into()));
        assert_eq!((count(0, Lang::En), count(999, Lang::Fr)), ("0".into(), "999".into()));
        assert_eq!((percent(0.0048, Lang::En), percent(0.0048, Lang::Fr)), ("0.48%".into(), "0,48\u{202f}%".into()));
        assert_eq!((percent(0.00001, Lang::En), percent(0.9999, Lang::En)), ("under 0.01%".into(), "over 99.9%".into()));
        assert_eq!((percent(0.0, Lang::En), percent(1.0, Lang::En)), ("0%".into(), "100%".into()));
        assert_eq!(size(123_456, Lang::Fr), "123\u{202f}456\u{a0}octets (123,5\u{a0}ko)");
        assert_eq!(size(12, Lang::En), "12\u{a0}bytes");
    }

    #[test]
    fn chances() {
        assert_eq!(chance(1.4e-11, Lang::En), "about 1 in 71\u{a0}billion");
        assert_eq!(chance(1.4e-11, Lang::Fr), "environ 1 sur 71\u{a0}milliards");
        assert_eq!(chance(2.7e-8, Lang::Fr), "environ 1 sur 37\u{a0}millions");
        assert_eq!(chance(2.7e-13, Lang::Fr), "environ 1 sur 3\u{202f}700\u{a0}milliards");
        assert_eq!(chance(2.7e-13, Lang::En), "about 1 in 3.7\u{a0}trillion");
        assert_eq!((chance(0.027, Lang::En), chance(0.001, Lang::En)), ("2.7%".into(), "about 1 in 1,000".into()));
        assert!(chance(1e-19, Lang::En).starts_with("less than"));
    }

    #[test]
    fn times() {
        let t = Instant::parse("2026-11-29T21:00:41Z").unwrap();
        assert_eq!(t.text(Lang::En), "29\u{a0}November 2026, 21:00:41\u{a0}UTC");
        assert_eq!(t.plus(3 * 3600).text(Lang::Fr), "30\u{a0}novembre 2026 à 0\u{a0}h\u{a0}00\u{a0}min\u{a0}41\u{a0}s (UTC)");
        assert_eq!(Instant::parse("1970-01-01T00:00:00.25Z"), Some(Instant(0)));
        assert_eq!(Instant::parse("2024-02-29T00:00:00Z").unwrap().0, 1_709_164_800);
        for bad in [
            "",
            "Z",
            "2026-11-29 21:00:41Z",
            "2026-13-01T00:00:00Z",
            "2026-11-29T21:00:41+01:00",
            "éééééééééééZ",
            "2026-11-29T21:00:4éZ",
        ] {
            assert_eq!(Instant::parse(bad), None, "{bad}");
        }
        for day in (-1_000_000..1_000_000).step_by(37) {
            let (y, m, d) = civil(day);
            assert_eq!(days(y, m, d), day);
        }
        assert_eq!(
            (duration(3600, Lang::En), duration(41, Lang::Fr), duration(3700, Lang::En)),
            ("1\u{a0}h".into(), "41\u{a0}s".into(), "1\u{a0}h\u{a0}1\u{a0}min\u{a0}40\u{a0}s".into())
        );
    }
}
