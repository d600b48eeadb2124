//! Questions to tables, answered by polars. In the feature `analyse`, as polars is three quarters of the build.

mod choose;
mod frame;
mod risk;
mod sql;

pub use choose::choose;
pub use risk::Risk;
pub use sql::{Answer, QueryError, Table, query};
