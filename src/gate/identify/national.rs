//! National identifiers: one row each with its shape, its usual groups and its check.

use super::Kind;
use super::cell::{Code, DASH, DOT, MIXED, PLUS, SLASH, SPACE, Shape};
use super::checks::{
    bsn, check_11, cif, cnp, codice, cpr, czech, fnr, hetu, idnr, nino, nir, nrn, ppsn, rvnr, siret, spanish, tva,
};
use super::numbers::{
    card, days_since_1867, digit, iban, last, luhn, mod_11_10, number, part, past, past_either, verhoeff, weighted,
};

struct Rule {
    kind: Kind,
    shape: Shape,
    /// Bit i: a separator may stand before the character i.
    places: u64,
    seps: u8,
    /// Countries that may stand before it, two letters each.
    prefixes: &'static [u8],
    check: fn(&Code) -> bool,
}

const fn rule(kind: Kind, shape: &str, places: &[u8], seps: u8, check: fn(&Code) -> bool) -> Rule {
    let (mut bits, mut i) = (0, 0);
    while i < places.len() {
        bits |= 1 << places[i];
        i += 1;
    }
    Rule { kind, shape: Shape::new(shape), places: bits, seps, prefixes: b"", check }
}

impl Rule {
    const fn with(self, prefixes: &'static [u8]) -> Self {
        Self { prefixes, ..self }
    }

    fn is(&self, code: &Code) -> bool {
        let bare = if self.shape.len == code.s.len() { None } else { self.prefixes.chunks_exact(2).find_map(|p| code.behind(p)) };
        let code = bare.as_ref().unwrap_or(code);
        self.shape.fits(code.s) && code.spaced(self.places, self.seps) && (self.check)(code)
    }
}

const D9: &str = "ddddddddd";
const D10: &str = "dddddddddd";
const D11: &str = "ddddddddddd";
const D13: &str = "ddddddddddddd";

static RULES: &[Rule] = &[
    rule(Kind::FrNir, "[1-478]dddd[0-9][0-9AB]dddddddd", &[1, 3, 5, 7, 10, 13], SPACE | DOT | DASH | SLASH | MIXED, |c| nir(c.s)),
    rule(Kind::FrSiren, D9, &[3, 6], SPACE | DOT, |c| luhn(c.s)),
    rule(Kind::FrSiret, "dddddddddddddd", &[3, 6, 9], SPACE | DOT, |c| siret(c.s)),
    rule(Kind::FrTva, "FR[0-9A-Z][0-9A-Z]ddddddddd", &[2, 4, 7, 10], SPACE | DOT, |c| tva(c.s)),
    rule(Kind::FrSpi, "[0-3]dddddddddddd", &[2, 4, 7, 10], SPACE, |c| part(c.s, 0, 10) % 511 == part(c.s, 10, 13)),
    rule(Kind::DeIdnr, "[1-9]dddddddddd", &[2, 5, 8], SPACE | DASH | SLASH | DOT, |c| idnr(c.s)),
    rule(Kind::DeRvnr, "ddddddddlddd", &[2, 8, 9, 11], SPACE, |c| rvnr(c.s)),
    rule(Kind::EsDni, "ddddddddl", &[2, 5, 8], SPACE | DASH | DOT | MIXED, |c| spanish(part(c.s, 0, 8), c.s)),
    rule(Kind::EsNie, "[XYZ]dddddddl", &[1, 2, 5, 8], SPACE | DASH | DOT | MIXED, |c| {
        spanish(u64::from(c.s[0] - b'X') * 10_000_000 + part(c.s, 1, 8), c.s)
    }),
    rule(Kind::EsNifKlm, "[KLM]dddddddl", &[1, 8], SPACE | DASH, |c| spanish(part(c.s, 1, 8), c.s)),
    rule(Kind::EsCif, "[A-HJNP-SUVW]ddddddd[0-9A-J]", &[1, 8], SPACE | DASH, |c| cif(c.s)).with(b"ES"),
    rule(Kind::ItCf, "lllllloo[ABCDEHLMPRST]ooloool", &[3, 6, 11, 15], SPACE | DASH, |c| codice(c.s)),
    rule(Kind::ItPiva, D11, &[], 0, |c| {
        part(c.s, 0, 7) > 0 && matches!(part(c.s, 7, 10), 1..=100 | 120 | 121 | 888 | 999) && luhn(c.s)
    })
    .with(b"IT"),
    rule(Kind::GbNino, "[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z]dddddd[A-D]", &[2, 4, 6, 8], SPACE | DASH, |c| nino(c.s)),
    rule(Kind::GbNino, "[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z]dddddd", &[2, 4, 6], SPACE | DASH, |c| nino(c.s)),
    rule(Kind::GbNhs, D10, &[3, 6], SPACE | DASH, |c| weighted(c.s, &[10, 9, 8, 7, 6, 5, 4, 3, 2, 1]).is_multiple_of(11)),
    rule(Kind::UsSsn, D9, &[3, 5], DASH | SPACE, |c| {
        let whole = number(c.s);
        !matches!(part(c.s, 0, 3), 0 | 666 | 900..) && part(c.s, 3, 5) > 0 && part(c.s, 5, 9) > 0
            // Numbers of advertisements and examples.
            && !matches!(whole, 78_051_120 | 219_099_999 | 457_555_462)
    }),
    rule(Kind::BeNrn, D11, &[2, 4, 6, 9], SPACE | DOT | DASH | MIXED, |c| nrn(c.s)),
    rule(Kind::NlBsn, D9, &[3, 4, 6], SPACE | DOT | DASH, |c| bsn(c.s, &[9, 8, 7, 6, 5, 4, 3, 2])),
    rule(Kind::NlBsn, "dddddddd", &[], 0, |c| bsn(c.s, &[8, 7, 6, 5, 4, 3, 2])),
    rule(Kind::PlPesel, D11, &[], 0, |c| {
        weighted(c.s, &[1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1]).is_multiple_of(10) && {
            let century = [19, 20, 21, 22, 18];
            let month = part(c.s, 2, 4);
            let place = usize::try_from(month / 20).unwrap_or(0);
            past(century[place] * 100 + part(c.s, 0, 2), month % 20, part(c.s, 4, 6))
        }
    }),
    rule(Kind::PtNif, "[1-9]dddddddd", &[3, 6], SPACE | DOT | DASH, |c| {
        matches!(part(c.s, 0, 2), 10..=39 | 45 | 50..=69 | 70..=72 | 74..=79 | 80..=99)
            && check_11(weighted(c.s, &[9, 8, 7, 6, 5, 4, 3, 2])) == last(c.s)
    })
    .with(b"PT"),
    rule(Kind::SePnr, D10, &[6], DASH | PLUS, |c| {
        let day = part(c.s, 4, 6) % 60;
        luhn(c.s) && part(c.s, 4, 6) < 92 && (18..21).any(|c100| past(c100 * 100 + part(c.s, 0, 2), part(c.s, 2, 4), day))
    }),
    rule(Kind::SePnr, "[12][089]dddddddddd", &[8], DASH | PLUS, |c| {
        luhn(&c.s[2..])
            && part(c.s, 6, 8) < 92
            && part(c.s, 0, 2) > 17
            && past(part(c.s, 0, 4), part(c.s, 4, 6), part(c.s, 6, 8) % 60)
    }),
    rule(Kind::FiHetu, "ddddddddd[0-9A-FHJ-NPR-Y]", &[6], DASH | PLUS, |c| {
        c.seps != 0 && hetu(&c.s[..6], if c.seps == PLUS { 18 } else { 19 }, &c.s[6..])
    }),
    rule(Kind::FiHetu, "dddddd[A-FU-Y]ddd[0-9A-FHJ-NPR-Y]", &[], 0, |c| {
        hetu(&c.s[..6], if c.s[6] < b'U' { 20 } else { 19 }, &c.s[7..])
    }),
    rule(Kind::DkCpr, D10, &[6], DASH | SPACE, |c| cpr(c.s)),
    rule(Kind::DkCprMod11, D10, &[6], DASH | SPACE, |c| {
        cpr(c.s) && weighted(c.s, &[4, 3, 2, 7, 6, 5, 4, 3, 2, 1]).is_multiple_of(11)
    }),
    rule(Kind::NoFnr, D11, &[6, 9], SPACE | DASH, |c| fnr(c.s)),
    rule(Kind::AtSvnr, "[1-9]ddddddddd", &[4, 6, 8], SPACE | DASH | DOT | SLASH, |c| {
        let (day, month, year) = (part(c.s, 4, 6), part(c.s, 6, 8), part(c.s, 8, 10));
        weighted(c.s, &[3, 7, 9, 0, 5, 8, 4, 2, 1, 6]) % 11 == digit(c.s[3])
            && (past_either(year, month, day) || (13..16).contains(&month) && (1..32).contains(&day))
    }),
    rule(Kind::ChAhv, "756dddddddddd", &[3, 7, 11], DOT | SPACE, |c| {
        weighted(c.s, &[1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1]).is_multiple_of(10)
    }),
    rule(Kind::CzRc, D10, &[6], SLASH | SPACE | DASH, |c| {
        let year = part(c.s, 0, 2) + if part(c.s, 0, 2) > 53 { 1900 } else { 2000 };
        part(c.s, 0, 9) % 11 % 10 == last(c.s) && czech(year, c.s)
    }),
    // Of those born until 1953: no check digit, so that only the slash tells.
    rule(Kind::CzRc, D9, &[6], SLASH, |c| c.seps == SLASH && part(c.s, 0, 2) < 54 && czech(1900 + part(c.s, 0, 2), c.s)),
    rule(Kind::RoCnp, "[1-9]dddddddddddd", &[], 0, |c| cnp(c.s)),
    rule(Kind::BgEgn, D10, &[], 0, |c| {
        let (year, month, day) = (part(c.s, 0, 2), part(c.s, 2, 4), part(c.s, 4, 6));
        let born = match month {
            0..=20 => past(1900 + year, month, day),
            21..=40 => past(1800 + year, month - 20, day),
            _ => past(2000 + year, month - 40, day),
        };
        born && weighted(c.s, &[2, 4, 8, 5, 10, 9, 7, 3, 6]) % 11 % 10 == last(c.s)
    }),
    rule(Kind::EeLtIk, "[1-8]dddddddddd", &[], 0, |c| {
        let check = match weighted(c.s, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 1]) % 11 {
            10 => weighted(c.s, &[3, 4, 5, 6, 7, 8, 9, 1, 2, 3]) % 11 % 10,
            r => r,
        };
        let century = 18 + (digit(c.s[0]) - 1) / 2;
        check == last(c.s) && past(century * 100 + part(c.s, 1, 3), part(c.s, 3, 5), part(c.s, 5, 7))
    }),
    rule(Kind::LvPk, D11, &[6], DASH, |c| {
        let check = (1101 - weighted(c.s, &[1, 6, 3, 7, 9, 10, 5, 8, 4, 2])) % 11 % 10 == last(c.s);
        // Numbers since 2017 have no date.
        let dated = || digit(c.s[6]) < 3 && past((18 + digit(c.s[6])) * 100 + part(c.s, 4, 6), part(c.s, 2, 4), part(c.s, 0, 2));
        check && ((32..40).contains(&part(c.s, 0, 2)) || dated())
    }),
    rule(Kind::HrOib, D11, &[], 0, |c| mod_11_10(c.s)).with(b"HR"),
    rule(Kind::SiEmso, D13, &[], 0, |c| {
        let year = part(c.s, 4, 7) + if part(c.s, 4, 7) < 800 { 2000 } else { 1000 };
        check_11(weighted(c.s, &[7, 6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2])) == last(c.s)
            && past(year, part(c.s, 2, 4), part(c.s, 0, 2))
    }),
    rule(Kind::HuTaj, D9, &[3, 6], SPACE | DASH, |c| weighted(c.s, &[3, 7, 3, 7, 3, 7, 3, 7]) % 10 == last(c.s)),
    rule(Kind::HuAdoazonosito, "8ddddddddd", &[], 0, |c| {
        weighted(c.s, &[1, 2, 3, 4, 5, 6, 7, 8, 9]) % 11 == last(c.s) && (10_000..=days_since_1867()).contains(&part(c.s, 1, 6))
    }),
    rule(Kind::GrAmka, D11, &[6], SPACE | DASH, |c| luhn(c.s) && past_either(part(c.s, 4, 6), part(c.s, 2, 4), part(c.s, 0, 2))),
    rule(Kind::GrAfm, D9, &[3, 6], SPACE, |c| weighted(c.s, &[256, 128, 64, 32, 16, 8, 4, 2]) % 11 % 10 == last(c.s))
        .with(b"ELGR"),
    rule(Kind::IePpsn, "ddddddd[A-W]", &[7], SPACE | DASH, |c| ppsn(c.s)),
    rule(Kind::IePpsn, "ddddddd[A-W][A-IWTX]", &[7, 8], SPACE | DASH, |c| ppsn(c.s)),
    rule(Kind::LuNin, "[12][089]ddddddddddd", &[4, 6, 8, 11], SPACE | DASH, |c| {
        let born = part(c.s, 0, 4) > 1799 && past(part(c.s, 0, 4), part(c.s, 4, 6), part(c.s, 6, 8));
        born && luhn(&c.s[..12]) && verhoeff(c.s[..11].iter().chain(&c.s[12..]))
    }),
];

/// Bit r of place n: the rule r is of numbers with n characters, with or without a country before them.
static OF_LENGTH: [u64; 17] = {
    let (mut of_length, mut r) = ([0; 17], 0);
    while r < RULES.len() {
        of_length[RULES[r].shape.len] |= 1 << r;
        if !RULES[r].prefixes.is_empty() {
            of_length[RULES[r].shape.len + 2] |= 1 << r;
        }
        r += 1;
    }
    of_length
};

/// Calls `each` for every kind that this is.
pub(super) fn all(code: Code, mut each: impl FnMut(Kind)) {
    let mut left = OF_LENGTH.get(code.s.len()).copied().unwrap_or(0);
    while left != 0 {
        // No two rules of a kind have the same length.
        let rule = &RULES[left.trailing_zeros() as usize];
        left &= left - 1;
        if rule.is(&code) && !filler(rule.kind, code.s) {
            each(rule.kind);
        }
    }
    for (kind, check) in [(Kind::Iban, iban as fn(Code) -> bool), (Kind::Card, card)] {
        if check(code) {
            each(kind);
        }
    }
}

/// Whether it is of this kind.
pub(super) fn is(kind: Kind, code: Code) -> bool {
    match kind {
        Kind::Iban => iban(code),
        Kind::Card => card(code),
        _ => RULES.iter().any(|r| r.kind == kind && r.is(&code)) && !filler(kind, code.s),
    }
}

/// Whether all digits are the same, which is no number of this kind but filler: zeros always, others if chance passes them
/// easily.
fn filler(kind: Kind, s: &[u8]) -> bool {
    let mut digits = s.iter().filter(|b| b.is_ascii_digit());
    let Some(first) = digits.next() else { return false };
    digits.all(|d| d == first) && (*first == b'0' || kind.chance() >= 0.04)
}

#[cfg(test)]
mod tests {
    use super::super::{kinds, matches};
    use super::*;

    /// Two that are of the kind and two that are not, all made up.
    #[test]
    fn each_kind_knows_its_own() {
        for (id, good, bad) in [
            ("fr_nir", ["2 11 12 2A 512 406 55", "274052B00911146"], ["178023353345329", "1 55 12 20 590 327 23"]),
            ("fr_siren", ["384309886", "656 693 801"], ["564757056", "013 673 034"]),
            ("fr_siret", ["35600000000048", "356 000 000 10988"], ["72395041600065", "018 569 459 00091"]),
            ("fr_spi", ["3479473864258", "33 17 520 716 384"], ["1466513644362", "29 36 312 303 075"]),
            ("de_idnr", ["93264065862", "47 219 680 631"], ["32481678087", "91 630 487 621"]),
            ("de_rvnr", ["10021098U569", "10 131137 C 594"], ["38290934W394", "10 100187 J 654"]),
            ("es_dni", ["72722397P", "09166010-G"], ["42117536S", "99802841-W"]),
            ("es_nie", ["X4189389P", "Z-0371990-Q"], ["Z0835832T", "X-3041662-P"]),
            ("es_nif_klm", ["L3194979A", "K-9178513-H"], ["M6704502Q", "K-2512073-B"]),
            ("es_cif", ["G1723513F", "P-2635602-B"], ["W1021312J", "C-2975191-0"]),
            ("it_cf", ["FCZRSR18C20A902W", "LDB PZB 68R19 Z065O"], ["ZLDNVM97H47C82RA", "MGM LMS 10R55 H381L"]),
            ("it_piva", ["37666080892", "56691060208"], ["97363830157", "98661770906"]),
            ("gb_nino", ["BX271721D", "JJ 73 99 20 C"], ["NT 23 04 12 A", "DA061592D"]),
            ("gb_nhs", ["1079771409", "531 520 4995"], ["3546622656", "112 411 5847"]),
            ("us_ssn", ["105801195", "092-71-1526"], ["000-86-7740", "666625503"]),
            ("be_nrn", ["67102498068", "14012715346"], ["02120776177", "56.10.13-623.29"]),
            ("nl_bsn", ["250583331", "8760.54.579"], ["267731925", "1202.19.157"]),
            ("pl_pesel", ["80010972207", "91061949632"], ["64080610651", "92022545722"]),
            ("pt_nif", ["152787305", "546 535 372"], ["262542040", "341 007 941"]),
            ("se_pnr", ["920829-3473", "200903+2240"], ["198706181288", "920102-6095"]),
            ("fi_hetu", ["211148-611H", "080528X094E"], ["260978-6685", "260964V403R"]),
            ("dk_cpr", ["2108563199", "150277-1907"], ["0005833931", "380118-9984"]),
            ("dk_cpr_mod11", ["1007026052", "020110-6419"], ["0701068209", "151061-9705"]),
            ("no_fnr", ["02100580619", "210484 47241"], ["21098404018", "230959 24965"]),
            ("at_svnr", ["9641051036", "1701 300713"], ["2020100392", "1385 201144"]),
            ("ch_ahv", ["7561282111264", "756.7889.3770.72"], ["7567814082825", "756.0942.3159.63"]),
            ("cz_rc", ["1861043855", "130720/4130"], ["8656073080", "155409/1277"]),
            ("ro_cnp", ["2651130109718", "2630808261071"], ["2601025303094", "1821010149795"]),
            ("bg_egn", ["7410310042", "1446202730"], ["7404133423", "3307161496"]),
            ("ee_lt_ik", ["60502260934", "33603316408"], ["61507027336", "47603132249"]),
            ("lv_pk", ["37023089968", "150583-15219"], ["33572312528", "180957-19615"]),
            ("hr_oib", ["61500111396", "64792149905"], ["07991540270", "04231820688"]),
            ("si_emso", ["2512017106749", "1404981105050"], ["1511933715455", "0808930104620"]),
            ("hu_taj", ["547006037", "352 141 202"], ["127596372", "306 594 000"]),
            ("hu_adoazonosito", ["8370064000", "8409126273"], ["8399077554", "8432807231"]),
            ("gr_amka", ["02120883877", "240602 89584"], ["08085463326", "051295 35179"]),
            ("gr_afm", ["832670110", "902515383"], ["057824532", "430146069"]),
            ("ie_ppsn", ["4645239T", "0146709 AA"], ["7192889D", "9249726 VB"]),
            ("lu_nin", ["1992062072923", "2011 1215 178 65"], ["1991032266920", "1950 0215 895 16"]),
            (
                "iban",
                ["NL11BUXJ5098063533", "PT79 6109 0982 4508 1464 7023 6"],
                ["BE63951405018136", "CH77 2980 2029 1726 5134 2"],
            ),
            ("card", ["4080103022123951", "5185 4142 2632 6212"], ["3530141052696364", "5567 6879 6746 7263"]),
            ("fr_tva", ["FR83404833048", "FR 83 404 833 048"], ["FR84404833048", "FR83404833049"]),
        ] {
            let kind = *Kind::ALL.iter().find(|k| k.id() == id).unwrap();
            for (text, expected) in good.map(|t| (t, true)).into_iter().chain(bad.map(|t| (t, false))) {
                assert_eq!(matches(kind, text), expected, "{id} {text}");
                let mut found = 0;
                kinds(text, |k| found += usize::from(k == kind));
                assert_eq!(found, usize::from(expected), "{id} {text}");
            }
        }
    }

    #[test]
    fn prefixes_separators_and_filler() {
        for (kind, text) in [
            (Kind::ItPiva, "IT37666080892"),
            (Kind::PtNif, "PT 152787305"),
            (Kind::GrAfm, "EL832670110"),
            (Kind::EsCif, "ESG1723513F"),
            (Kind::BeNrn, "67.10.24-980.68"),
            (Kind::EsDni, "72.722.397-P"),
            (Kind::FrSiret, "356 000 000 10988"),
            (Kind::DeRvnr, "15070649C103"),
            (Kind::HuTaj, "111111110"),
            (Kind::LuNin, "1893120105732"),
        ] {
            assert!(matches(kind, text), "{text}");
        }
        for (kind, text) in [
            (Kind::FrSiren, "38-430-98-86"),
            (Kind::FrSiren, "3843 09886"),
            (Kind::FrSiren, "384 309.886"),
            (Kind::FrSiren, "000000000"),
            (Kind::HrOib, "IT61500111396"),
            (Kind::NlBsn, "000000000"),
            (Kind::DkCpr, "0000000000"),
            (Kind::CzRc, "320513123"),
        ] {
            assert!(!matches(kind, text), "{text}");
        }
    }
}
