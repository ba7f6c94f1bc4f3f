// Acquires a lock through the stubs that protoc makes of proto/, and nothing else of ours:
//
//   acquire unix:///run/sidekeeper/sidekeeper.sock orders

#include <iostream>
#include <string>

#include <grpcpp/grpcpp.h>

#include "sidekeeper/lock/v1/lock.grpc.pb.h"

namespace {

using sidekeeper::lock::v1::AcquireRequest;
using sidekeeper::lock::v1::AcquireResponse;
using sidekeeper::lock::v1::LockService;
using sidekeeper::lock::v1::ReleaseRequest;
using sidekeeper::lock::v1::ReleaseResponse;

// The reason of a refusal, from its trailer: a name of sidekeeper.errors.v1.Reason.
std::string ReasonOf(const grpc::ClientContext& call) {
  const auto found = call.GetServerTrailingMetadata().find("sidekeeper-reason");
  return found == call.GetServerTrailingMetadata().end() ? "" : std::string(found->second.data(), found->second.size());
}

// Tries once, while the lock is held, and tells why it was refused.
void BeRefused(LockService::Stub& locks, const std::string& name) {
  grpc::ClientContext call;
  AcquireRequest request;
  request.set_name(name);
  request.mutable_wait_timeout();  // zero
  AcquireResponse answer;
  const auto stream = locks.Acquire(&call, request);
  while (stream->Read(&answer)) {
  }
  if (!stream->Finish().ok()) std::cout << "refused: " << ReasonOf(call) << std::endl;
}

}  // namespace

int main(int count, char** words) {
  if (count != 3) {
    std::cerr << "usage: acquire ADDRESS NAME" << std::endl;
    return 64;
  }
  grpc::ChannelArguments arguments;
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
  const auto channel = grpc::CreateCustomChannel(words[1], grpc::InsecureChannelCredentials(), arguments);
  LockService::Stub locks(channel);

  grpc::ClientContext call;
  AcquireRequest request;
  request.set_name(words[2]);
  request.set_owner("c++");
  const auto held = locks.Acquire(&call, request);
  AcquireResponse answer;
  while (held->Read(&answer)) {  // ends when the lock is not ours any more
    if (!answer.has_granted()) continue;
    std::cout << "granted with token " << answer.granted().fencing_token() << std::endl;
    BeRefused(locks, words[2]);

    grpc::ClientContext another;
    ReleaseRequest release;
    release.set_hold_id(answer.granted().hold_id());
    ReleaseResponse released;
    if (const auto status = locks.Release(&another, release, &released); !status.ok()) {
      std::cerr << status.error_message() << std::endl;
      return 1;
    }
  }
  if (const auto status = held->Finish(); !status.ok()) {
    std::cerr << status.error_message() << std::endl;
    return 70;
  }
  std::cout << "released" << std::endl;
}
