//! Mailboxes, addresses of machines, positions, dates and postcodes.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::cell::{Code, DASH, LONGEST, SPACE, Shape};
use super::numbers::{days_of, number, part};

/// A mailbox with its domain; letters of other alphabets are letters.
pub(super) fn email(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    let Some((_, top)) = domain.rsplit_once('.') else { return false };
    let local_char = |b: u8| b.is_ascii_alphanumeric() || b >= 128 || b".!#$%&'*+/=?^_`{|}~-".contains(&b);
    let label = |l: &str| {
        !l.is_empty()
            && !l.starts_with('-')
            && !l.ends_with('-')
            && l.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b >= 128)
    };
    (1..=64).contains(&local.len())
        && domain.len() < 254
        && local.bytes().all(local_char)
        && top.len() > 1
        && (top.starts_with("xn--") || top.bytes().all(|b| b.is_ascii_alphabetic() || b >= 128))
        && domain.split('.').all(label)
        && !text.chars().any(|c| c.is_whitespace() || c.is_control())
}

/// A URL with a user, or user and password, before its host.
pub(super) fn url_user(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or("");
    let scheme_char = |b: u8| b.is_ascii_alphanumeric() || b"+-.".contains(&b);
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(scheme_char)
        && authority.rsplit_once('@').is_some_and(|(user, host)| !user.is_empty() && !host.is_empty())
        && !text.contains(char::is_whitespace)
}

/// An address of a machine, maybe with the port of IPv4.
pub(super) fn ip(plain: &[u8]) -> bool {
    let count = |mark: u8| plain.iter().filter(|b| **b == mark).count();
    if !(3..=45).contains(&plain.len()) || (count(b'.') != 3 && count(b':') < 2) {
        return false;
    }
    let Ok(text) = str::from_utf8(plain) else { return false };
    let v4 = text.split_once(':').filter(|(_, port)| port.parse::<u16>().is_ok()).map_or(text, |(address, _)| address);
    v4.parse::<Ipv4Addr>().is_ok() || text.parse::<Ipv6Addr>().is_ok()
}

/// Six pairs of hexadecimal digits, or three groups of four.
pub(super) fn mac(plain: &[u8]) -> bool {
    let groups = |mark: u8, n: usize, len: usize| {
        plain.len() == n * len + n - 1
            && plain.split(|b| *b == mark).all(|g| g.len() == len && g.iter().all(u8::is_ascii_hexdigit))
    };
    groups(b':', 6, 2) || groups(b'-', 6, 2) || groups(b'.', 3, 4)
}

/// 8, 4, 4, 4 and 12 hexadecimal digits, maybe in braces.
pub(super) fn uuid(plain: &[u8]) -> bool {
    let bare = plain.strip_prefix(b"urn:uuid:").unwrap_or(plain);
    let bare = bare.strip_prefix(b"{").and_then(|b| b.strip_suffix(b"}")).unwrap_or(bare);
    bare.len() == 36
        && bare.iter().enumerate().all(|(i, b)| if matches!(i, 8 | 13 | 18 | 23) { *b == b'-' } else { b.is_ascii_hexdigit() })
}

/// Latitude and longitude with three decimals each or more, as 100 metres and less are somebody's place.
pub(super) fn gps(plain: &[u8]) -> bool {
    if plain.len() < 11 {
        return false;
    }
    let bare = plain.strip_prefix(b"(").and_then(|b| b.strip_suffix(b")")).unwrap_or(plain);
    // A comma parts the two only if decimals have points.
    let mark = [b';', b',', b' '].into_iter().find(|m| bare.contains(m) && (*m != b',' || bare.contains(&b'.')));
    let Some((latitude, longitude)) = mark.and_then(|mark| {
        let at = bare.iter().position(|b| *b == mark)?;
        Some((bare[..at].trim_ascii(), bare[at + 1..].trim_ascii()))
    }) else {
        return false;
    };
    let degrees = |text: &[u8], limit: u64| {
        let text = text.strip_prefix(b"-").or(text.strip_prefix(b"+")).unwrap_or(text);
        let Some(at) = text.iter().position(|b| matches!(b, b'.' | b',')) else { return false };
        let (whole, decimals) = (&text[..at], &text[at + 1..]);
        let digits = whole.iter().chain(decimals).all(u8::is_ascii_digit);
        digits && (1..=3).contains(&whole.len()) && (3..=16).contains(&decimals.len()) && number(whole) < limit
    };
    degrees(latitude, 90) && degrees(longitude, 180)
}

/// Year, month and day of a date, maybe with a time behind it: the year first or last, and of two readings, the day before the
/// month.
pub(super) fn date(plain: &[u8]) -> Option<(u32, u32, u32)> {
    let end = plain.iter().position(|b| matches!(b, b' ' | b'T')).unwrap_or(plain.len());
    let (day, time) = plain.split_at(end);
    let mark = *day.iter().find(|b| !b.is_ascii_digit()).filter(|b| matches!(b, b'-' | b'/' | b'.'))?;
    let mut parts = day.split(|b| *b == mark);
    let (a, b, c) = (parts.next()?, parts.next()?, parts.next()?);
    if day.len() > 10 || parts.next().is_some() || b.len() > 2 || ![a, b, c].iter().all(|p| is_number(p)) {
        return None;
    }
    let (first, second, third) = (number(a), number(b), number(c));
    let real = |y: u64, m: u64, d: u64| (y > 0 && d > 0 && d <= days_of(y, m)).then_some((y, m, d));
    let found = match (a.len(), c.len()) {
        (4, 1 | 2) => real(first, second, third),
        (1 | 2, 4) if mark == b'/' => real(third, second, first).or(real(third, first, second)),
        (1 | 2, 4) => real(third, second, first),
        _ => None,
    };
    let (y, m, d) = found.filter(|_| time.split_first().is_none_or(|(_, time)| clock(time)))?;
    Some((u32::try_from(y).ok()?, u32::try_from(m).ok()?, u32::try_from(d).ok()?))
}

fn is_number(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(u8::is_ascii_digit)
}

/// Hours and minutes, maybe with seconds, a zone or half of the day.
fn clock(time: &[u8]) -> bool {
    let mut parts = time.splitn(3, |b| *b == b':');
    let (hours, minutes, rest) = (parts.next().unwrap_or(b""), parts.next().unwrap_or(b""), parts.next().unwrap_or(b"00"));
    let end = minutes.len().min(2);
    is_number(hours)
        && hours.len() < 3
        && number(hours) < 25
        && minutes.len() > 1
        && is_number(&minutes[..end])
        && number(&minutes[..end]) < 60
        && minutes[end..].iter().chain(rest).all(|b| b.is_ascii_digit() || b" .,:+-ZAPMapm".contains(b))
}

/// Postcodes: the country, their shape, where a space may stand (or a dash must), and the lowest and highest of the digits they
/// begin with.
type Post = (&'static str, Shape, u64, u8, usize, (u64, u64));

static POSTS: &[Post] = &[
    ("FR", Shape::new("ddddd"), 0, 0, 5, (1000, 98_999)),
    ("FR", Shape::new("[1-9]ddd"), 0, 0, 4, (1000, 9999)),
    ("DE", Shape::new("ddddd"), 0, 0, 5, (1000, 99_999)),
    ("ES", Shape::new("ddddd"), 0, 0, 5, (1000, 52_999)),
    ("IT", Shape::new("ddddd"), 0, 0, 5, (10, 98_168)),
    ("GB", Shape::new("[A-PR-UWYZ]dd[ABD-HJLNP-UW-Z][ABD-HJLNP-UW-Z]"), 1 << 2, SPACE, 0, (0, 0)),
    ("GB", Shape::new("[A-PR-UWYZ]ddd[ABD-HJLNP-UW-Z][ABD-HJLNP-UW-Z]"), 1 << 3, SPACE, 0, (0, 0)),
    ("GB", Shape::new("[A-PR-UWYZ][A-HK-Y]dd[ABD-HJLNP-UW-Z][ABD-HJLNP-UW-Z]"), 1 << 3, SPACE, 0, (0, 0)),
    ("GB", Shape::new("[A-PR-UWYZ]d[A-HJKPS-UW]d[ABD-HJLNP-UW-Z][ABD-HJLNP-UW-Z]"), 1 << 3, SPACE, 0, (0, 0)),
    ("GB", Shape::new("[A-PR-UWYZ][A-HK-Y]d[0-9ABEHMNPRV-Y]d[ABD-HJLNP-UW-Z][ABD-HJLNP-UW-Z]"), 1 << 4, SPACE, 0, (0, 0)),
    ("GB", Shape::new("GIR0AA"), 1 << 3, SPACE, 0, (0, 0)),
    ("BE", Shape::new("[1-9]ddd"), 0, 0, 4, (1000, 9992)),
    ("BE", Shape::new("B[1-9]ddd"), 1 << 1, DASH, 0, (0, 0)),
    ("NL", Shape::new("[1-9]dddll"), 1 << 4, SPACE, 0, (0, 0)),
    ("CH", Shape::new("[1-9]ddd"), 0, 0, 4, (1000, 9658)),
    ("CH", Shape::new("CH[1-9]ddd"), 1 << 2, DASH, 0, (0, 0)),
    ("AT", Shape::new("[1-9]ddd"), 0, 0, 4, (1010, 9992)),
    ("AT", Shape::new("A[1-9]ddd"), 1 << 1, DASH, 0, (0, 0)),
    ("PT", Shape::new("[1-9]dddddd"), 1 << 4, DASH, 0, (0, 0)),
    ("PL", Shape::new("ddddd"), 1 << 2, DASH, 0, (0, 0)),
    ("SE", Shape::new("[1-9]dddd"), 1 << 3, SPACE, 0, (0, 0)),
    ("US", Shape::new("ddddd"), 0, 0, 5, (501, 99_999)),
    ("US", Shape::new("ddddddddd"), 1 << 5, DASH, 0, (0, 0)),
    (
        "IE",
        Shape::new("[AC-FHKNPRTV-Y]d[0-9W][0-9AC-FHKNPRTV-Y][0-9AC-FHKNPRTV-Y][0-9AC-FHKNPRTV-Y][0-9AC-FHKNPRTV-Y]"),
        1 << 3,
        SPACE,
        0,
        (0, 0),
    ),
];

/// A postcode of this country, or of any that is known.
pub(super) fn postcode(plain: &[u8], country: Option<&str>) -> bool {
    // Most cells that come here are numbers.
    if country.is_none() && plain.iter().all(u8::is_ascii_digit) {
        return match plain.len() {
            4 => plain[0] != b'0',
            5 => number(plain) > 9,
            _ => false,
        };
    }
    let mut letters = [0; LONGEST];
    let Some(code) = Code::read(plain, &mut letters).filter(|c| (4..=9).contains(&c.s.len())) else { return false };
    POSTS.iter().any(|(of, shape, place, sep, first, (low, high))| {
        let digits = part(code.s, 0, *first);
        country.is_none_or(|country| country.eq_ignore_ascii_case(of))
            && shape.fits(code.s)
            && code.spaced(*place, *sep)
            && (*sep != DASH || code.seps == DASH)
            && (*low..=*high).contains(&digits)
            // No such départements, and no such letters.
            && !(*of == "FR" && matches!(digits, 96_000..=96_999))
            && !(*of == "NL" && code.s[4] == b'S' && matches!(code.s[5], b'A' | b'D' | b'S'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        assert!(["a@b.fr", "zoe.lefevre+x@mail.example.co.uk", "zoé@exämple.de"].into_iter().all(email));
        assert!(
            !["a@b", "@b.fr", "a b@c.fr", "a@b.f", "a@-b.fr", "a@b..fr", "a@b.f1", "see zoe@b.fr", "zoe@b.fr."]
                .into_iter()
                .any(email)
        );
        assert!(url_user("https://zoe@example.fr/") && url_user("ftp://zoe:secret@10.0.0.1:21/x?y"));
        assert!(!url_user("https://example.fr/@zoe") && !url_user("https://example.fr") && !url_user("see https://a@b.fr x"));
        assert!([&b"192.168.1.20"[..], b"10.0.0.1:8080", b"fe80::1", b"2001:db8:0:0:0:0:0:1"].into_iter().all(ip));
        assert!(![&b"1.2.3"[..], b"256.1.1.1", b"12:34:56", b"1.2.3.4.5", b"01.02.03.04"].into_iter().any(ip));
        assert!(
            mac(b"aa:bb:cc:dd:ee:ff")
                && mac(b"00-1B-63-84-45-E6")
                && mac(b"001b.6384.45e6")
                && !mac(b"aa:bb:cc:dd:ee")
                && !mac(b"ag:bb:cc:dd:ee:ff")
        );
        assert!(uuid(b"123e4567-e89b-12d3-a456-426614174000") && uuid(b"{123E4567-e89b-12d3-a456-426614174000}"));
        assert!(!uuid(b"123e4567e89b12d3a456426614174000") && !uuid(b"123e4567-e89b-12d3-a456-42661417400g"));
    }

    #[test]
    fn positions_and_dates() {
        assert!([&b"48.8566, 2.3522"[..], b"(48.8566,-2.3522)", b"48,8566; 2,3522", b"-33.865 151.209"].into_iter().all(gps));
        assert!(
            ![&b"48.8, 2.3"[..], b"148.8566, 2.3522", b"48.8566", b"48,8566", b"1,250.00", b"48.8566, 182.3522"]
                .into_iter()
                .any(gps)
        );
        for text in [
            "1986-02-14",
            "14/02/1986",
            "02/14/1986",
            "14.02.1986",
            "14-02-1986",
            "1986-02-14T12:30:00Z",
            "14/2/1986 12:30",
            "1986/02/14 1:30 PM",
        ] {
            assert_eq!(date(text.as_bytes()), Some((1986, 2, 14)), "{text}");
        }
        for text in [
            "1986-02-30",
            "14/14/1986",
            "14.02.86",
            "1986-02",
            "19860214",
            "1986-02-14 x",
            "02.14.1986",
            "14/02/1986/3",
            "1986-02-14 12:75",
        ] {
            assert_eq!(date(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn postcodes() {
        for (country, good, bad) in [
            ("FR", "75011", "96000"),
            ("FR", "1000", "00999"),
            ("DE", "01067", "00999"),
            ("ES", "28001", "53000"),
            ("IT", "00118", "99000"),
            ("GB", "sw1a 1aa", "SW1A1A A"),
            ("GB", "M1 1AE", "QM1 1AE"),
            ("BE", "B-1000", "0999"),
            ("NL", "1012 AB", "1012 SS"),
            ("CH", "8001", "9999"),
            ("AT", "A-1010", "1000"),
            ("PT", "1000-205", "1000205"),
            ("PL", "00-950", "00950"),
            ("SE", "111 22", "1112 2"),
            ("IE", "D02 AF30", "B02 AF30"),
        ] {
            assert!(postcode(good.as_bytes(), Some(country)) && postcode(good.as_bytes(), None), "{good}");
            assert!(!postcode(bad.as_bytes(), Some(country)), "{bad}");
        }
        assert!(!postcode(b"12.50", None) && !postcode(b"2024-01-01", None) && !postcode(b"Paris", None));
    }
}
