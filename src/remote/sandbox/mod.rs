//! The embedded endpoint: `OpenAI`'s Files, Containers and Responses on loopback, with SQL in the place of a model.
//!
//! A real HTTP server with the real rules: a token, errors in the service's shapes, expiry by the clock, deletion that deletes.
//! Its data lives in a private folder that goes with it.

mod answer;
mod containers;
mod files;
mod parts;
mod responses;
mod store;
mod stream;
mod upload;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{get, post};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use answer::ApiError;
use store::Store;

use crate::error::{Error, Result};

/// What the names of its folders begin with.
const FOLDER: &str = "hmask-sandbox-";

/// How often expired data is looked for; a request looks as well.
const SWEEP: Duration = Duration::from_secs(1);

/// What all handlers share.
type Shared = Arc<Mutex<Store>>;

/// A running endpoint. Dropped, it stops and its data is gone.
pub struct Sandbox {
    base_url: String,
    api_key: String,
    stop: Option<oneshot::Sender<()>>,
    server: tokio::task::JoinHandle<()>,
}

impl Sandbox {
    /// The folder that the endpoint of this run keeps its data in, as long as it runs.
    pub fn folder(task: &str) -> PathBuf {
        std::env::temp_dir().join(format!("{FOLDER}{task}"))
    }

    /// Starts on a loopback address; port 0 takes any. Without a key a random one is made. Data goes to `folder`, which is made.
    ///
    /// # Errors
    /// An address beyond loopback, one that is taken, or a folder that is there already.
    pub async fn start(address: SocketAddr, api_key: Option<String>, folder: &Path) -> Result<Self> {
        if !address.ip().is_loopback() {
            return Err(Error::usage(format!("{} is not a loopback address", address.ip())).hint("--listen 127.0.0.1:0"));
        }
        let failed = |e| Error::io(format!("cannot listen on {address}"), e);
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let base_url = format!("http://{}/v1", listener.local_addr().map_err(failed)?);
        let api_key = api_key.unwrap_or_else(|| format!("sk-sandbox-{}", store::random_hex(16)));
        let store = Arc::new(Mutex::new(Store::new(folder)?));
        let (stop, stopped) = oneshot::channel();
        let app = router(store.clone(), &api_key);
        let server = tokio::spawn(async move {
            let sweep = async {
                loop {
                    tokio::time::sleep(SWEEP).await;
                    lock(&store).expire();
                }
            };
            tokio::select! {
                // It fails only when the listener does, and then nobody is served any more.
                _ = async { axum::serve(listener, app).await } => {}
                () = sweep => {}
                _ = stopped => {}
            }
            // Handlers that are still at work hold the folder; their data goes with it.
            lock(&store).clear();
        });
        Ok(Self { base_url, api_key, stop: Some(stop), server })
    }

    /// As clients want it, with `/v1`.
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// The token that it takes.
    pub fn api_key(&self) -> &str {
        &self.api_key
    }

    /// Stops, and waits until the data is gone.
    pub async fn stop(mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        let _ = (&mut self.server).await;
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
    }
}

fn lock(store: &Shared) -> std::sync::MutexGuard<'_, Store> {
    store.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn router(store: Shared, api_key: &str) -> Router {
    let container = "/v1/containers/{container}";
    let file = "/v1/containers/{container}/files/{file}";
    Router::new()
        .route("/v1/files", post(files::create).get(files::list))
        .route("/v1/files/{file}", get(files::retrieve).delete(files::delete))
        .route("/v1/files/{file}/content", get(files::content))
        .route("/v1/uploads", post(parts::create))
        .route("/v1/uploads/{upload}/parts", post(parts::add))
        .route("/v1/uploads/{upload}/complete", post(parts::complete))
        .route("/v1/uploads/{upload}/cancel", post(parts::cancel))
        .route("/v1/containers", post(containers::create).get(containers::list))
        .route(container, get(containers::retrieve).delete(containers::delete))
        .route(&format!("{container}/files"), post(containers::create_file).get(containers::list_files))
        .route(file, get(containers::retrieve_file).delete(containers::delete_file))
        .route(&format!("{file}/content"), get(containers::content))
        .route("/v1/models/{model}", get(responses::model))
        .route("/v1/responses", post(responses::create))
        .route("/v1/responses/{response}", get(responses::retrieve).delete(responses::delete))
        .route("/v1/responses/{response}/cancel", post(responses::cancel))
        .fallback(|| async { ApiError::not_found("Invalid URL") })
        .method_not_allowed_fallback(|| async { ApiError::new(405, "Not allowed for this URL") })
        .layer(DefaultBodyLimit::disable())
        .layer(middleware::from_fn_with_state(Arc::<str>::from(api_key), authorise))
        .with_state(store)
}

async fn authorise(State(api_key): State<Arc<str>>, request: Request, next: Next) -> Result<Response, ApiError> {
    match is_right(&request, &api_key) {
        Some(true) => Ok(next.run(request).await),
        Some(false) => Err(ApiError::new(401, "Incorrect API key provided.").code("invalid_api_key")),
        None => Err(ApiError::new(401, "You didn't provide an API key.")),
    }
}

/// Whether the token of a request is right, if it has one; Azure's header will do as well.
fn is_right(request: &Request, api_key: &str) -> Option<bool> {
    let header = |name: &str| request.headers().get(name).and_then(|v| v.to_str().ok());
    let given = header("authorization").and_then(|v| v.strip_prefix("Bearer ")).or_else(|| header("api-key"));
    given.map(|token| token == api_key)
}
