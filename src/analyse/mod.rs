//! Questions to tables, answered by polars. In the feature `analyse`, as polars is three quarters of the build.

mod frame;
mod risk;
mod sql;

pub use risk::Risk;
pub use sql::{Answer, QueryError, Table, query};
