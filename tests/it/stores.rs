//! One contract for all that a table can be lent to: an endpoint, object stores, a folder. The stores are real servers, where they are there:
//! `SeaweedFS` for S3 (`HMASK_TEST_WEED`, or `weed` in the path), Azurite for Azure (`HMASK_TEST_AZURITE`, or `azurite-blob`).

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hmask::gate::originals::Originals;
use hmask::gate::{Cleared, Outgoing};
use hmask::remote::objects::{Objects, Options};
use hmask::remote::target::{Seen, Target};
use hmask::table::{Format, TextLayout};
use object_store::aws::{AwsAuthorizer, AwsCredential};
use object_store::azure::{AzureAccessKey, AzureAuthorizer, AzureCredential};
use object_store::client::HttpRequestBody;

use super::env::{Place, TOKEN, fixture};
use super::mask::PERSONAL;
use super::server::{Fault, Proxy, Server, forward, rules};
use super::sweep::{gather, journals, kill_at_each_step};

/// A pseudonym of `fixtures/clients.csv`, by which a reader knows the table.
const KNOWN: &str = "536e53806def165c";
const AWS_KEY: &str = "hmaskaccess";
const AWS_SECRET: &str = "hmask-canary-secret";
/// Azurite's account and key, which its documentation names.
const AZURE_ACCOUNT: &str = "devstoreaccount1";
const AZURE_KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// Somebody to lend to, and a look at what lies there that is not hmask's own.
struct Shop {
    name: &'static str,
    to: String,
    vars: Vec<(&'static str, String)>,
    /// Whether a reader needs nothing but an address.
    signed: bool,
    list: Box<dyn Fn() -> Vec<String>>,
}

impl Shop {
    fn place(&self) -> Place {
        self.vars.iter().fold(Place::new(), |place, (name, value)| place.set(name, value))
    }

    fn lend<'a>(&'a self, file: &'a str, more: &[&'a str]) -> Vec<&'a str> {
        [&["lend", file, "-c", PERSONAL, "--to", &self.to, "--delete-for=2"], more].concat()
    }
}

/// Ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // SIGTERM takes SeaweedFS half a minute.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What every recipient must do.
fn contract(shop: &Shop) {
    let (name, table) = (shop.name, fixture("clients.csv"));
    let file = table.to_str().unwrap();
    assert_eq!((shop.list)(), Vec::<String>::new(), "{name}: not empty at the start");

    // While it is lent whoever has the address reads it, and a changed one opens nothing; afterwards it is gone.
    let place = shop.place();
    let mut command = place.command(&shop.lend(file, &["--hold", "60s"]));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let Ok(said) = serde_json::from_str::<serde_json::Value>(&line) else {
        let _ = child.kill();
        panic!("{name}: {}", String::from_utf8_lossy(&child.wait_with_output().unwrap().stderr));
    };
    assert_eq!((shop.list)().len(), 1, "{name}: {line}");
    let url = said["url"].as_str().unwrap_or_default().to_owned();
    if shop.signed {
        let id = said["file_id"].as_str().unwrap();
        let hidden = id.rsplit_once('-').unwrap().1.split('.').next().unwrap();
        assert!(hidden.len() == 32 && hidden.bytes().all(|b| b.is_ascii_hexdigit()), "{name}: {id} can be guessed");
        let read = get(&url);
        assert!(read.0 == 200 && read.1.contains(KNOWN), "{name}: {read:?}");
        if url.starts_with("http") {
            assert_eq!(get(&format!("{url}0")).0, 403, "{name}: a changed address");
            assert!(matches!(get(url.split_once('?').unwrap().0).0, 403 | 404), "{name}: no signature");
            assert!(read.2.contains("attachment; filename=\"hmask-"), "{name}: {}", read.2);
        }
    }
    child.stdin.take().unwrap().write_all(b"\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && err.contains("deleted, and confirmed gone: "), "{name}: {err}");
    assert!(![AWS_SECRET, AZURE_KEY, TOKEN, "X-Amz-Signature", "sig="].iter().any(|s| err.contains(s)), "{name}: {err}");
    assert_eq!((shop.list)(), Vec::<String>::new(), "{name}: {err}");
    if shop.signed {
        assert!(matches!(get(&url).0, 403 | 404), "{name}: it can still be read");
    }

    // The command's exit code is passed on, and it sees no secret.
    let ran = shop.place().run(&shop.lend(file, &["--", "sh", "-c", "env; exit 7"]));
    assert_eq!((ran.code, (shop.list)()), (7, vec![]), "{name}: {}", ran.err);
    let seen = ran.text();
    assert!(seen.contains("HMASK_FILE_ID=") && seen.contains("HMASK_FILE_URL=") == shop.signed, "{name}: {seen}");
    assert!(![AWS_SECRET, AZURE_KEY, TOKEN].iter().any(|s| seen.contains(s)), "{name}: {seen}");

    // Killed before and after each line of the journal, and swept once.
    let places = kill_at_each_step(|| shop.place(), |place| place.run(&shop.lend(file, &["--", "true"])));
    assert!(places.len() >= 12 && (shop.list)().len() >= 2, "{name}: {} kills, {:?}", places.len(), (shop.list)());
    let place = shop.place();
    gather(&places, &place);
    let swept = place.run(&["sweep", "--delete-for=5"]).ok();
    assert_eq!(((shop.list)(), journals(&place)), (vec![], vec![]), "{name}: {}", swept.err);
}

#[test]
fn an_endpoint_keeps_the_contract() {
    let server = Server::start(rules([]));
    let to = server.url();
    let vars = vec![("OPENAI_API_KEY", TOKEN.into())];
    let shop = Shop { name: "endpoint", to: to.clone(), vars, signed: false, list: Box::new(move || server.live_ids()) };
    contract(&shop);
}

#[test]
fn a_folder_keeps_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_owned();
    let list = move || fs::read_dir(&path).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    let to = format!("file://{}", folder.path().display());
    contract(&Shop { name: "folder", to, vars: vec![], signed: true, list: Box::new(list) });
    let place = Place::new();
    let file = fixture("clients.csv");
    place
        .run(&["lend", file.to_str().unwrap(), "-c", PERSONAL, "--to", "file:///no/such/folder", "--", "true"])
        .fails(2, "no folder");
    place.run(&["ask", file.to_str().unwrap(), "-c", PERSONAL, "--to", "file:///", "how many?"]).fails(2, "nobody answers");

    // Another disk is mounted there, or none: what was lent is not seen, and not gone.
    let share = place.path("share");
    fs::create_dir(&share).unwrap();
    let to = format!("file://{}", share.display());
    let killed = Place::new().set("HMASK_TEST_KILL_AT", "9");
    assert_eq!(killed.run(&["lend", file.to_str().unwrap(), "-c", PERSONAL, "--to", &to, "--", "true"]).code, -1);
    let killed = killed.unset("HMASK_TEST_KILL_AT");
    fs::rename(&share, place.path("elsewhere")).unwrap();
    fs::create_dir(&share).unwrap();
    let ran = killed.run(&["sweep"]);
    assert!(ran.code == 5 && ran.err.contains("another account, server or disk"), "{}", ran.err);
    fs::remove_dir(&share).unwrap();
    fs::rename(place.path("elsewhere"), &share).unwrap();
    killed.run(&["sweep"]).ok();
    assert_eq!(fs::read_dir(&share).unwrap().count(), 0);
}

#[test]
fn s3_keeps_the_contract_with_and_without_versions() {
    let Some(weed) = tool("HMASK_TEST_WEED", "weed") else { return };
    let folder = tempfile::tempdir().unwrap();
    let (_server, port) = seaweed(&weed, folder.path());
    let host = format!("127.0.0.1:{port}");
    let call = {
        let host = host.clone();
        move |method: &str, path: &str, body: &str| aws(&host, method, path, body)
    };
    for bucket in ["plain", "versioned", "locked"] {
        let start = Instant::now();
        while call("PUT", &format!("/{bucket}"), "").0 != 200 {
            assert!(start.elapsed() < Duration::from_secs(30), "no bucket can be made");
            std::thread::sleep(Duration::from_millis(200));
        }
    }
    let versioning = "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>";
    for bucket in ["versioned", "locked"] {
        assert_eq!(call("PUT", &format!("/{bucket}?versioning="), versioning).0, 200);
    }
    let vars = vec![
        ("AWS_ENDPOINT_URL", format!("http://{host}")),
        ("AWS_ACCESS_KEY_ID", AWS_KEY.into()),
        ("AWS_SECRET_ACCESS_KEY", AWS_SECRET.into()),
    ];
    for (bucket, folder) in [("plain", "some/where"), ("versioned", "some/where"), ("versioned", "caf%C3%A9%20prêt/50%25 ~")] {
        let list = {
            let call = call.clone();
            move || {
                let all = call("GET", &format!("/{bucket}?versions="), "").1;
                all.split("<Version>").skip(1).map(|v| v.split("</Key>").next().unwrap().to_owned()).collect()
            }
        };
        let to = format!("s3://{bucket}/{folder}");
        contract(&Shop { name: bucket, to, vars: vars.clone(), signed: true, list: Box::new(list) });
    }
    expires(&format!("s3://{}", "plain/x"), &vars);

    // Killed within the upload; and then the bucket does not say, for a time, that it keeps versions: that is no reason to forget them.
    let file = fixture("clients.csv");
    let proxy = Proxy::before(host.clone(), rules([]));
    let through = |place: Place| {
        let place = vars.iter().fold(place, |place, (name, value)| place.set(name, value));
        place.set("AWS_ENDPOINT_URL", &proxy.origin())
    };
    let place = through(Place::new()).set("HMASK_TEST_KILL_AT", "7");
    let args = ["lend", file.to_str().unwrap(), "-c", PERSONAL, "--to", "s3://versioned/killed", "--", "true"];
    assert_eq!(place.run(&args).code, -1);
    let place = place.unset("HMASK_TEST_KILL_AT");
    for (request, fault) in [
        ("GET /versioned/?versioning", Fault::Status(503)),
        ("GET /versioned/?versioning", Fault::Status(403)),
        ("GET /versioned/?versions", Fault::Status(500)),
    ] {
        let is_forbidden = fault == Fault::Status(403);
        proxy.break_with((request, usize::MAX, fault));
        let ran = place.run(&["sweep", "--delete-for=1"]);
        // Who may not ask is still told the versions.
        assert_eq!(ran.code, if is_forbidden { 0 } else { 5 }, "{request}: {}", ran.err);
        proxy.heal();
        if is_forbidden {
            assert!(call("GET", "/versioned?versions=", "").1.split("<Version>").nth(1).is_none(), "{}", ran.err);
            assert_eq!(place.run(&args).code, 0);
            let again = through(Place::new()).set("HMASK_TEST_KILL_AT", "7");
            assert_eq!(again.run(&args).code, -1);
            gather(&[again], &place);
        }
    }
    place.run(&["sweep"]).ok();
    assert!(call("GET", "/versioned?versions=", "").1.split("<Version>").nth(1).is_none());
    let ran = place.run(&["lend", "x.csv", "-c", "a", "--to", "s3://key:hidden@versioned/x", "--", "true"]).fails(2, "no user");
    assert!(!ran.err.contains("hidden"));
    // A policy must allow the bucket and the server that it is on.
    let policy = |hosts: &str| format!("version = 1\nallow_hosts = [{hosts}]\n[columns.client_id]\ntreatment = \"pseudonym\"\n");
    for (hosts, allowed) in [("\"versioned\"", false), ("\"versioned\", \"127.0.0.1\"", true)] {
        place.write("hmask.toml", policy(hosts));
        let ran =
            place.run(&[&args[..4], &["--policy", "hmask.toml", "--to", "s3://versioned/x", "--dry-run"], &args[6..]].concat());
        assert_eq!(ran.err.contains("the policy does not allow 127.0.0.1"), !allowed, "{}", ran.err);
    }

    // A bucket whose objects cannot be deleted for a time is refused before anything is sent.
    let lock = "<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled><Rule><DefaultRetention><Mode>COMPLIANCE</Mode><Days>1</Days></DefaultRetention></Rule></ObjectLockConfiguration>";
    let file = fixture("clients.csv");
    let lend = |bucket: &str| {
        let place = vars.iter().fold(Place::new(), |place, (name, value)| place.set(name, value));
        place.run(&["lend", file.to_str().unwrap(), "-c", PERSONAL, "--to", &format!("s3://{bucket}"), "--", "true"])
    };
    assert_eq!(call("PUT", "/locked?object-lock=", lock).0, 200);
    lend("locked").fails(4, "locks each object for a time (compliance)");
    lend("nosuchbucket").fails(4, "it is not known whether the bucket keeps old versions");
    assert!(call("GET", "/locked?versions=", "").1.split("<Version>").nth(1).is_none());
}

#[test]
fn azure_keeps_the_contract_and_soft_delete_is_refused() {
    let Some(azurite) = tool("HMASK_TEST_AZURITE", "azurite-blob") else { return };
    let folder = tempfile::tempdir().unwrap();
    let port = free_port(4);
    let mut command = Command::new(if azurite.extension().is_some_and(|e| e == "js") { "node".into() } else { azurite.clone() });
    if azurite.extension().is_some_and(|e| e == "js") {
        command.arg(&azurite);
    }
    command.args(["--silent", "--disableTelemetry", "--skipApiVersionCheck", "--blobHost", "127.0.0.1"]);
    command.args(["--blobPort", &port.to_string()]).arg("--location").arg(folder.path());
    let _server = Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let host = format!("127.0.0.1:{port}");
    await_port(&host);
    let call = {
        let host = host.clone();
        move |method: &str, path: &str, body: &str| azure(&host, method, path, body)
    };
    assert_eq!(call("PUT", "/lend?restype=container", "").0, 201);
    let vars = vec![
        ("AZURE_STORAGE_ENDPOINT", format!("http://{host}/{AZURE_ACCOUNT}")),
        ("AZURE_STORAGE_ACCOUNT_NAME", AZURE_ACCOUNT.into()),
        ("AZURE_STORAGE_ACCOUNT_KEY", AZURE_KEY.into()),
    ];
    let list = {
        let call = call.clone();
        move || {
            let all = call("GET", "/lend?comp=list&restype=container", "").1;
            all.split("<Name>").skip(1).map(|v| v.split("</Name>").next().unwrap().to_owned()).collect()
        }
    };
    contract(&Shop { name: "azure", to: "az://lend/a".into(), vars: vars.clone(), signed: true, list: Box::new(list) });
    expires("az://lend/a", &vars);

    let policy = "<StorageServiceProperties><DeleteRetentionPolicy><Enabled>true</Enabled><Days>7</Days></DeleteRetentionPolicy></StorageServiceProperties>";
    assert_eq!(call("PUT", "?comp=properties&restype=service", policy).0, 202);
    let file = fixture("clients.csv");
    let place = vars.iter().fold(Place::new(), |place, (name, value)| place.set(name, value));
    let args = ["lend", file.to_str().unwrap(), "-c", PERSONAL, "--to", "az://lend", "--", "true"];
    place.run(&args).fails(4, "keeps deleted blobs for 7 days");
    let ran = place.run(&[&args[..6], &["--accept-versioning"], &args[6..]].concat()).ok();
    assert!(ran.err.contains("warning: the account keeps deleted blobs for 7 days"), "{}", ran.err);
}

/// A signed address opens nothing once its time is over, though the object is there.
fn expires(to: &str, vars: &[(&'static str, String)]) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let originals = Originals::default();
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(format!("a,b\n{KNOWN},1\n").as_bytes()).unwrap();
    let outgoing = Outgoing {
        format: Format::Csv,
        layout: TextLayout::default(),
        max_bytes: 1000,
        masked: vec![(1, "a".into())],
        originals: &originals,
        accepted: None,
        workers: 1,
        risk: None,
    };
    let cleared = Cleared::check(file, &outgoing).unwrap();
    runtime.block_on(async {
        let options = Options {
            settings: vars.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
            certificates: None,
            accept_versioning: false,
            life: Duration::from_secs(2),
        };
        let store = Objects::connect(to, options, std::sync::Arc::new(|_| {})).await.unwrap();
        let upload = store.upload("hmask-test.csv", &cleared, &mut |_| {}).await.unwrap();
        let url = upload.url.unwrap();
        assert_eq!(get(&url).0, 200, "{to}");
        tokio::time::sleep(Duration::from_millis(3500)).await;
        assert_eq!(get(&url).0, 403, "{to}: expired, and still open");
        assert_eq!(store.look(&upload.thing).await.unwrap(), Seen::There, "{to}");
        assert_eq!(store.delete(&upload.thing).await.unwrap(), Seen::There, "{to}");
        assert_eq!(store.look(&upload.thing).await.unwrap(), Seen::Gone, "{to}");
    });
}

/// The program that a variable names, or that is in the path.
#[expect(clippy::print_stderr, clippy::disallowed_methods, reason = "the servers are not part of the project")]
fn tool(variable: &str, name: &str) -> Option<PathBuf> {
    let named = std::env::var_os(variable).map(PathBuf::from);
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let found = named.or_else(|| std::env::split_paths(&paths).map(|p| p.join(name)).find(|p| p.is_file()));
    if found.is_none() {
        eprintln!("skipped: no {name}; {variable} names one");
    }
    found
}

fn seaweed(weed: &std::path::Path, folder: &std::path::Path) -> (Running, u16) {
    let identities = format!(
        r#"{{"identities":[{{"name":"hmask","credentials":[{{"accessKey":"{AWS_KEY}","secretKey":"{AWS_SECRET}"}}],"actions":["Admin","Read","Write","List","Tagging"]}}]}}"#
    );
    fs::write(folder.join("s3.json"), identities).unwrap();
    fs::create_dir(folder.join("data")).unwrap();
    let ports: Vec<u16> = (0..4).map(free_port).collect();
    let mut command = Command::new(weed);
    command.arg("server").arg(format!("-dir={}", folder.join("data").display()));
    command.args([
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        "-volume.max=60",
        "-master.volumeSizeLimitMB=16",
        "-master.telemetry=false",
    ]);
    for (name, port) in ["master.port", "volume.port", "filer.port", "s3.port"].iter().zip(&ports) {
        command.arg(format!("-{name}={port}"));
    }
    command.args(["-filer", "-s3", "-s3.iam=false", "-s3.port.iceberg=0", "-s3.port.lance=0"]);
    command.arg(format!("-s3.config={}", folder.join("s3.json").display())).current_dir(folder);
    let server = Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    await_port(&format!("127.0.0.1:{}", ports[3]));
    (server, ports[3])
}

/// A port that is free, and whose neighbour ten thousand above is, too: `SeaweedFS` takes both. For each `number` below 8 another one.
fn free_port(number: u16) -> u16 {
    let first = 12_000 + u16::try_from(std::process::id() % 500).unwrap() * 16 + number;
    let is_free = |port: u16| std::net::TcpListener::bind(("127.0.0.1", port)).is_ok();
    (first..first + 8000).step_by(8).find(|p| is_free(*p) && is_free(*p + 10_000)).unwrap()
}

fn await_port(host: &str) {
    let start = Instant::now();
    while std::net::TcpStream::connect(host).is_err() {
        assert!(start.elapsed() < Duration::from_mins(1), "{host} does not listen");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Status, body and head of what anybody gets at an address.
fn get(url: &str) -> (u16, String, String) {
    if let Some(path) = url.strip_prefix("file://") {
        return fs::read_to_string(path).map_or((404, String::new(), String::new()), |text| (200, text, String::new()));
    }
    let rest = url.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_once('/').unwrap();
    send(host, &format!("GET /{path} HTTP/1.0\r\nHost: {host}\r\n\r\n"))
}

fn send(host: &str, request: &str) -> (u16, String, String) {
    let answer = String::from_utf8_lossy(&forward(host, request.as_bytes())).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    (head.split(' ').nth(1).and_then(|s| s.parse().ok()).unwrap_or(0), body.to_owned(), head.to_owned())
}

/// A request to S3, signed.
fn aws(host: &str, method: &str, path: &str, body: &str) -> (u16, String) {
    let credential = AwsCredential { key_id: AWS_KEY.into(), secret_key: AWS_SECRET.into(), token: None };
    let mut request = request(&format!("http://{host}{path}"), method, body);
    AwsAuthorizer::new(&credential, "s3", "us-east-1").try_authorize(&mut request, None).unwrap();
    raw(host, path, body, &request)
}

/// A request to Azure, signed.
fn azure(host: &str, method: &str, path: &str, body: &str) -> (u16, String) {
    let credential = AzureCredential::AccessKey(AzureAccessKey::try_new(AZURE_KEY).unwrap());
    let path = format!("/{AZURE_ACCOUNT}{}{path}", if path.starts_with('?') { "/" } else { "" });
    let mut request = request(&format!("http://{host}{path}"), method, body);
    request.headers_mut().insert("content-length", body.len().into());
    AzureAuthorizer::new(&credential, AZURE_ACCOUNT).try_authorize(&mut request).unwrap();
    raw(host, &path, body, &request)
}

fn request(url: &str, method: &str, body: &str) -> http::Request<HttpRequestBody> {
    http::Request::builder().method(method).uri(url).body(body.to_owned().into()).unwrap()
}

fn raw(host: &str, path: &str, body: &str, request: &http::Request<HttpRequestBody>) -> (u16, String) {
    let mut text = format!("{} {path} HTTP/1.0\r\nHost: {host}\r\nContent-Length: {}\r\n", request.method(), body.len());
    for (name, value) in request.headers().iter().filter(|(name, _)| *name != "content-length" && *name != "host") {
        text += &format!("{name}: {}\r\n", value.to_str().unwrap());
    }
    let (status, answer, _) = send(host, &format!("{text}\r\n{body}"));
    (status, answer)
}
