//! Everything that talks to a network: [`client`] sends and limits, [`target`] is what it has to speak with whoever gets something, [`openai`], `objects` and [`folder`] do; [`thing`] is what was lent, [`lease`] gives it back,
//! [`journal`] writes it down, [`loan`] goes the way from upload to deletion, [`asking`] uses what is lent, [`sweep`] gives back what dead runs left, [`save`] keeps outputs, [`sandbox`] is an endpoint of one's own.

pub mod asking;
pub mod client;
pub mod folder;
pub mod journal;
pub mod lease;
pub mod loan;
#[cfg(feature = "objects")]
pub mod objects;
pub mod openai;
#[cfg(feature = "analyse")]
pub mod sandbox;
pub mod save;
pub mod sweep;
pub mod target;
pub mod thing;
