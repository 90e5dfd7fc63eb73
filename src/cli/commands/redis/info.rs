//! `stanch redis info`

use std::time::Instant;

use super::{clock, listing_code, show};
use crate::analysis::redis::RedisReport;
use crate::analysis::redis::info::{self, Info, Looked};
use crate::cli::args::redis::RedisInfoArgs;
use crate::cli::commands::Context;
use crate::cli::fault::Fault;
use crate::cli::redis::place as redis_place;
use crate::cli::redis::saved as redis_saved;
use crate::model::{ExitCode, RedisCoverage, RedisInfo};
use crate::source::redis::{Refused, node_info, rights, slow_log};

/// Entries of the slow log that are shown.
const SLOW: usize = 5;

pub async fn run(ctx: &mut Context<'_>, args: &RedisInfoArgs) -> Result<ExitCode, Fault> {
    let read = async |ctx: &mut Context<'_>| read(ctx, args).await;
    let report = redis_saved::report(ctx, "info", &args.keep, read).await?;
    show(ctx, false, &report)?;
    Ok(listing_code(&report))
}

async fn read(ctx: &mut Context<'_>, args: &RedisInfoArgs) -> Result<RedisReport<Info>, Fault> {
    let mut fleet = redis_place::open(ctx, &args.place).await?;
    let place = fleet.target.label();
    let taken_at = clock(ctx, &mut fleet).await;
    let mut coverage = RedisCoverage {
        complete: true,
        ..RedisCoverage::default()
    };
    let mut first = Vec::new();
    for node in &mut fleet.nodes {
        first.push((node_info(node).await, Instant::now()));
    }
    if fleet.facts.is_some() {
        tokio::time::sleep(args.sample).await;
    }
    let mut looked = Vec::new();
    for (node, (first, begun)) in fleet.nodes.iter_mut().zip(first) {
        let second = node_info(node).await;
        let between = begun.elapsed().into();
        let (first, second) = match (first, second) {
            (Err(lost @ Refused::Lost(_)), _) | (_, Err(lost @ Refused::Lost(_))) => {
                return Err(lost.at(&place).into());
            }
            (Ok(first), Ok(second)) => (first, second),
            (Err(refused), _) | (_, Err(refused)) => {
                coverage.without("info", "failed", refused.text().to_owned());
                (RedisInfo::default(), RedisInfo::default())
            }
        };
        let slow_log = match slow_log(node, SLOW).await {
            Ok(entries) => Some(entries),
            Err(Refused::NotPermitted(_)) => None,
            Err(refused) => {
                coverage.note("slow_log", "failed", refused.text());
                None
            }
        };
        let rights = rights(node).await.map_err(|lost| lost.at(&place))?;
        looked.push(Looked {
            node: node.name.clone(),
            first,
            second,
            between,
            slow_log,
            rights,
        });
    }
    fleet.state_unreached(&mut coverage);
    let granted = looked.first().map_or(&[][..], |node| &node.rights);
    for grant in granted.iter().filter_map(|right| right.grant.clone()) {
        coverage.lacks(grant);
    }
    Ok(info::report(taken_at, fleet.target, coverage, looked))
}
