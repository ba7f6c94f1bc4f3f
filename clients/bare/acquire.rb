# Acquires a lock through the stubs that protoc makes of proto/, and nothing else of ours:
#
#   ruby -I STUBS acquire.rb unix:///run/sidekeeper/sidekeeper.sock orders

require "sidekeeper/lock/v1/lock_services_pb"

include Sidekeeper::Lock::V1

address, name = ARGV
# Ruby's gRPC makes the authority of the socket's path, which no HTTP/2 server takes.
locks = LockService::Stub.new(address, :this_channel_is_insecure, channel_args: {"grpc.default_authority" => "localhost"})

granted = nil
held = locks.acquire(AcquireRequest.new(name: name, owner: "ruby"))
held.each do |answer| # ends when the lock is not ours any more; raises when it was lost
  case answer.event
  when :granted
    granted = answer.granted
    puts "granted with token #{granted.fencing_token}"

    begin # nobody else gets it now
      locks.acquire(AcquireRequest.new(name: name, wait_timeout: Google::Protobuf::Duration.new)).to_a
    rescue GRPC::FailedPrecondition => refused
      puts "refused: #{refused.metadata["sidekeeper-reason"]}"
    end

    locks.release(ReleaseRequest.new(hold_id: granted.hold_id))
  end
end
puts "released"
