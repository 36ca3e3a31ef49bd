//! Which of Kafka's APIs the brokers offer, asked once at start: callers choose by it, not by the error of a try.
use std::net::ToSocketAddrs;
use std::time::{Duration, Instant};

use super::LinkFault;
use super::metadata::host_of;
use crate::net::{BlockingCall, NetError, Peer, Security};
use crate::wire::message::{
    API_VERSIONS_FALLBACK, API_VERSIONS_FIRST, ApiKey, ApiVersionsRequest, ApiVersionsResponse, Offered, RequestHeader,
};
use crate::wire::{ErrorCode, WireError};

/// Bytes of the request, without the client's name.
const REQUEST_BYTES: usize = 256;
/// Most bytes of an answer: 128 APIs need some 1.5 KiB.
const MAX_ANSWER_BYTES: usize = 64 << 10;
/// Longest wait for one server, so that a dead one leaves time for the next.
const ONE_SERVER: Duration = Duration::from_secs(5);

/// Asks the first of the bootstrap servers that answers, within `timeout` together. Blocks; for the start only.
pub(crate) fn ask_offered(
    bootstrap: &[String],
    security: &Security,
    client_id: &str,
    timeout: Duration,
) -> Result<Offered, LinkFault> {
    let end = Instant::now() + timeout;
    let mut last = LinkFault::Net(NetError::NotConnected);
    let resolved = |server: &'_ String| server.to_socket_addrs().ok().map(|addrs| addrs.collect::<Vec<_>>());
    let all = bootstrap.iter().filter_map(|server| Some((host_of(server), resolved(server)?)));
    for (host, addr) in all.flat_map(|(host, addrs)| addrs.into_iter().map(move |addr| (host, addr))) {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        match ask(&Peer { addr, host, security }, client_id, left.min(ONE_SERVER)) {
            Ok(offered) => return Ok(offered),
            // The next one would refuse, too.
            Err(fault) if fault.is_refusal() => return Err(fault),
            Err(fault) => last = fault,
        }
    }
    Err(last)
}

fn ask(peer: &Peer<'_>, client_id: &str, timeout: Duration) -> Result<Offered, LinkFault> {
    let mut call = BlockingCall::connect(peer, REQUEST_BYTES + client_id.len(), MAX_ANSWER_BYTES, timeout)?;
    let mut code = ErrorCode::UnsupportedVersion;
    for version in [API_VERSIONS_FIRST, API_VERSIONS_FALLBACK] {
        let answer = call.call(timeout, |correlation_id, into| {
            let header = RequestHeader { api: ApiKey::ApiVersions, version, correlation_id, client_id };
            let request = ApiVersionsRequest { software_name: "plimsoll", software_version: env!("CARGO_PKG_VERSION") };
            request.write(into, &header).map(|_| ()).map_err(LinkFault::from)
        })?;
        let answer = ApiVersionsResponse::read(answer, version)?;
        code = answer.error;
        match code {
            ErrorCode::None => {
                answer.offered.check_release()?;
                return Ok(answer.offered);
            }
            ErrorCode::UnsupportedVersion => {}
            _ => break,
        }
    }
    Err(WireError::Broker { api: ApiKey::ApiVersions.name(), code }.into())
}
