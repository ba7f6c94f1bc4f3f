# Two participants agree, and then one does not, through the stubs that protoc makes of proto/, and nothing else of ours:
#
#   ruby -I STUBS agree.rb unix:///run/sidekeeper/sidekeeper.sock transfers

require "sidekeeper/agreement/v1/agreement_services_pb"

include Sidekeeper::Agreement::V1

address, name = ARGV
# Ruby's gRPC makes the authority of the socket's path, which no HTTP/2 server takes.
agreements = AgreementService::Stub.new(address, :this_channel_is_insecure, channel_args: {"grpc.default_authority" => "localhost"})

# begun is the id of a new agreement of a and b.
begun = lambda do
  timeout = Google::Protobuf::Duration.new(seconds: 60)
  agreements.begin(BeginRequest.new(name: name, participants: %w[a b], timeout: timeout)).agreement
end

# vote votes, and returns what decides when there is a decision.
vote = lambda do |agreement, participant|
  events = agreements.vote(VoteRequest.new(name: name, agreement: agreement, participant: participant))
  raise "not voted" unless events.next.event == :voted
  -> { loop { answer = events.next; return answer.decided.decision if answer.event == :decided } }
end

agreement = begun.call
decisions = %w[a b].map { |participant| vote.call(agreement, participant) }
puts "decided #{decisions.map(&:call).join(" ")}"
puts "awaited #{agreements.await(AwaitRequest.new(name: name, agreement: agreement)).first.decision}"

agreement = begun.call
decision = vote.call(agreement, "a")
puts "aborted #{agreements.abort(AbortRequest.new(name: name, agreement: agreement)).decision}"
puts "decided #{decision.call}"

agreements.forget(ForgetRequest.new(name: name, agreement: agreement))
begin
  agreements.await(AwaitRequest.new(name: name, agreement: agreement)).first
rescue GRPC::NotFound => unknown
  puts "forgotten: #{unknown.metadata["sidekeeper-reason"]}"
end
