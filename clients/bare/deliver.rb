# Puts an item into a queue, takes it and has it removed, through the stubs that protoc makes of proto/, and nothing else of ours:
#
#   ruby -I STUBS deliver.rb unix:///run/sidekeeper/sidekeeper.sock mail

require "sidekeeper/queue/v1/queue_services_pb"

include Sidekeeper::Queue::V1

address, name = ARGV
# Ruby's gRPC makes the authority of the socket's path, which no HTTP/2 server takes.
queues = QueueService::Stub.new(address, :this_channel_is_insecure, channel_args: {"grpc.default_authority" => "localhost"})

# delivered is the first delivery of a stream, which goes on.
def delivered(taken)
  loop do
    answer = taken.next
    return answer.delivered if answer.event == :delivered
  end
end

queues.put(PutRequest.new(name: name, value: "to: me"))

first = queues.take(TakeRequest.new(name: name, owner: "ruby"), return_op: true)
given_up = delivered(first.execute)
puts "delivered #{given_up.values.join}"

begin # nobody else gets it now
  queues.take(TakeRequest.new(name: name, wait_timeout: Google::Protobuf::Duration.new)).to_a
rescue GRPC::FailedPrecondition => refused
  puts "refused: #{refused.metadata["sidekeeper-reason"]}"
end
first.cancel # gives the item back

taken = queues.take(TakeRequest.new(name: name, owner: "ruby"))
again = delivered(taken)
puts "delivered again with a #{again.fencing_token > given_up.fencing_token ? "larger" : "smaller"} token"

begin
  queues.done(DoneRequest.new(hold_id: given_up.hold_id))
rescue GRPC::Aborted => refused
  puts "not done: #{refused.metadata["sidekeeper-reason"]}"
end

queues.done(DoneRequest.new(hold_id: again.hold_id))
loop { taken.next } # ends with the delivery
puts "done"
