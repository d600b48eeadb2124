//! What stores answer: XML by its elements, and pages of lists of versions.

use quick_xml::Reader;
use quick_xml::events::Event;

/// The text of the first element of this name.
pub(super) fn element(xml: &[u8], name: &str) -> Option<String> {
    elements(xml).ok()?.into_iter().find(|(path, _)| path.last().is_some_and(|last| last == name)).map(|(_, text)| text)
}

/// The texts of all elements of this name.
pub(super) fn elements_named(xml: &[u8], name: &str) -> Vec<String> {
    let all = elements(xml).unwrap_or_default().into_iter();
    all.filter(|(path, _)| path.last().is_some_and(|last| last == name)).map(|(_, text)| text).collect()
}

/// The text of an element within another.
pub(super) fn section(xml: &[u8], above: &str, name: &str) -> Option<String> {
    let found = |path: &[String]| path.last().is_some_and(|last| last == name) && path.iter().any(|p| p == above);
    elements(xml).ok()?.into_iter().find(|(path, _)| found(path)).map(|(_, text)| text)
}

/// All texts of a document, each with the names of the elements that it stands in.
fn elements(xml: &[u8]) -> Result<Vec<(Vec<String>, String)>, String> {
    let not_read = |_| "the answer is no XML".to_owned();
    let (mut reader, mut path, mut all, mut text) = (Reader::from_reader(xml), Vec::new(), Vec::new(), String::new());
    loop {
        match reader.read_event().map_err(not_read)? {
            Event::Start(start) => {
                path.push(String::from_utf8_lossy(start.local_name().as_ref()).into_owned());
                text.clear();
            }
            Event::Text(piece) => text += &piece.decode().map_err(|_| "the answer is no XML".to_owned())?,
            Event::GeneralRef(name) => match name.resolve_char_ref().ok().flatten() {
                Some(c) => text.push(c),
                None => match &*name {
                    b"amp" => text.push('&'),
                    b"lt" => text.push('<'),
                    b"gt" => text.push('>'),
                    b"quot" => text.push('"'),
                    b"apos" => text.push('\''),
                    _ => return Err("the answer is no XML".into()),
                },
            },
            Event::End(_) => {
                if !text.trim().is_empty() {
                    all.push((path.clone(), std::mem::take(&mut text)));
                }
                text.clear();
                path.pop();
            }
            Event::Eof => return Ok(all),
            _ => {}
        }
    }
}

/// A page of versions.
#[derive(Default)]
pub(super) struct Page {
    /// Keys and versions; marks of deletions are not among them, as they hold nothing.
    pub versions: Vec<(String, Option<String>)>,
    /// Where the next page begins.
    pub next: Option<(String, String)>,
}

impl Page {
    /// A list of S3 (`ListObjectVersions`).
    pub(super) fn of_s3(xml: &[u8]) -> Result<Self, String> {
        let (mut versions, mut key, mut cut, mut next) = (Vec::new(), String::new(), false, (String::new(), String::new()));
        for (path, text) in elements(xml)? {
            let above = path.len().checked_sub(2).and_then(|i| path.get(i)).map(String::as_str);
            match (above, path.last().map(String::as_str)) {
                (Some("Version"), Some("Key")) => key = text,
                (Some("Version"), Some("VersionId")) => versions.push((key.clone(), Some(text))),
                (_, Some("IsTruncated")) => cut = text == "true",
                (_, Some("NextKeyMarker")) => next.0 = text,
                (_, Some("NextVersionIdMarker")) => next.1 = text,
                _ => {}
            }
        }
        Ok(Self { versions, next: cut.then_some(next) })
    }

    /// A list of Azure (List Blobs); without versioning a blob has none.
    pub(super) fn of_azure(xml: &[u8]) -> Result<Self, String> {
        let mut page = Self::default();
        for (path, text) in elements(xml)? {
            let above = path.len().checked_sub(2).and_then(|i| path.get(i)).map(String::as_str);
            match (above, path.last().map(String::as_str)) {
                (Some("Blob"), Some("Name")) => page.versions.push((text, None)),
                (Some("Blob"), Some("VersionId")) => page.versions.last_mut().into_iter().for_each(|v| v.1 = Some(text.clone())),
                (_, Some("NextMarker")) => page.next = Some((text, String::new())),
                _ => {}
            }
        }
        Ok(page)
    }

    /// A list of Google (Objects: list).
    pub(super) fn of_google(json: &[u8]) -> Result<Self, String> {
        let body: serde_json::Value = serde_json::from_slice(json).map_err(|_| "the answer is no JSON".to_owned())?;
        let text = |v: &serde_json::Value| v.as_str().map(str::to_owned).or_else(|| v.as_u64().map(|n| n.to_string()));
        let items = body["items"].as_array().map_or(&[][..], Vec::as_slice);
        let versions = items.iter().filter_map(|item| Some((text(&item["name"])?, text(&item["generation"])))).collect();
        Ok(Self { versions, next: text(&body["nextPageToken"]).map(|token| (token, String::new())) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_versions_without_marks_of_deletion() {
        let xml = br#"<?xml version="1.0"?><ListVersionsResult xmlns="x"><IsTruncated>true</IsTruncated>
            <NextKeyMarker>b&amp;c</NextKeyMarker><NextVersionIdMarker>v9</NextVersionIdMarker>
            <Version><Key>a</Key><VersionId>v1</VersionId></Version><Version><Key>b&amp;c</Key><VersionId>null</VersionId></Version>
            <DeleteMarker><Key>d</Key><VersionId>v3</VersionId></DeleteMarker></ListVersionsResult>"#;
        let some = |key: &str, version: &str| (key.to_owned(), Some(version.to_owned()));
        let page = Page::of_s3(xml).unwrap();
        assert_eq!(page.versions, [some("a", "v1"), some("b&c", "null")]);
        assert_eq!(page.next, Some(("b&c".to_owned(), "v9".to_owned())));
        assert!(Page::of_s3(b"<a><b></a>").is_err());
        let xml = b"<EnumerationResults><Blobs><Blob><Name>a</Name><VersionId>v1</VersionId></Blob><Blob><Name>b</Name></Blob></Blobs><NextMarker>m</NextMarker></EnumerationResults>";
        let page = Page::of_azure(xml).unwrap();
        assert_eq!(
            (page.versions, page.next),
            (vec![some("a", "v1"), ("b".to_owned(), None)], Some(("m".to_owned(), String::new())))
        );
        let page = Page::of_google(br#"{"items":[{"name":"a","generation":"17"}]}"#).unwrap();
        assert_eq!((page.versions, page.next), (vec![some("a", "17")], None));
        assert_eq!(element(b"<Error><Code>NoSuchVersion</Code></Error>", "Code").as_deref(), Some("NoSuchVersion"));
        let properties = b"<P><Logging><Enabled>true</Enabled></Logging><DeleteRetentionPolicy><Enabled>false</Enabled></DeleteRetentionPolicy></P>";
        assert_eq!(section(properties, "DeleteRetentionPolicy", "Enabled").as_deref(), Some("false"));
    }
}
