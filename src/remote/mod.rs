//! Everything that talks to a network: [`client`] sends and limits, [`openai`] knows the API, [`lease`] gives back what was lent,
//! [`loan`] goes the way from upload to deletion, [`save`] keeps outputs, [`sandbox`] is an endpoint of one's own.

pub mod client;
pub mod lease;
pub mod loan;
pub mod openai;
#[cfg(feature = "analyse")]
pub mod sandbox;
pub mod save;
