// Package zookeeper keeps sessions with an Apache ZooKeeper ensemble, and ends each of them here before the ensemble can end it there. It is
// the only package that connects to ZooKeeper.
//
// A Client is one sidecar's access to one ensemble. It opens a Session for each lease; what a caller holds is an ephemeral node of that
// session. The client also keeps one session of its own, the reader, which lists and watches nodes for all the others. The files say:
//
//   - connection.go: how a session stands with the ensemble
//   - ownership.go: what a session owns
//   - proof.go, pulse.go, company.go, heartbeat.go, prober.go: how a session proves that it is alive
//   - barrier.go: until when no program can have asked for one of its nodes
//   - close_lost.go: how the client closes a session at the ensemble that was lost
//   - server_list.go: to which servers sessions connect
//
// # When a session is certainly alive
//
// A lock is held by a session, and the ensemble gives the lock to the next one as soon as it has expired the session. So a
// session must end here before it can end there. "Connected" does not tell: a follower that is cut off from its leader
// answers pings and reads for up to syncLimit ticks, while the leader expires the session. And the last answer does not
// tell either: the leader's timer runs from what followers report to it, and a follower that dies takes its last report
// with it. Each session therefore sends heartbeats which are transactions (a multi that holds a check), one at a time, each
// after the one before was answered, and is alive until
//
//	T × (1 − 2ρ) − margin + max { s_i : r_i ≤ Q − tick/2 − δ }
//
// where s_i and r_i are when request i of the present connection was sent and answered, Q is when the second newest
// answered heartbeat was sent, T is the timeout the ensemble granted, ρ the clocks' rate error (1 %), δ how late a leader may be with
// a ping (0.1 s), and all instants are read from CLOCK_BOOTTIME.
//
// Any transaction of the session counts as a heartbeat that was sent and answered on the present connection, whatever it asks for, once a
// quorum has committed it. The answer shows that: it says that the transaction was carried out, or gives one of the verdicts that the leader
// puts into its order (NoNode, NodeExists, NotEmpty, BadVersion). The answer that a request was throttled, or that the session has moved or
// expired, does not show it. Nor does NoAuth, which servers may answer by themselves (enableEagerACLCheck), except about a part of a multi.
// And the transaction counts only if it was sent after the one that counts before it was answered: two that were under way together show no
// more than one of them. As request i counts any request that was answered, reads among them. So a session that is used sends no heartbeats.
//
// Why: let n be the newest answered heartbeat, F the server of the connection and L its leader.
//
//  1. L pings F every tick/2, or up to δ later: its thread waits for tick/2 and then does its work. F answers each ping with the
//     sessions that were active since its last answer, and L then starts their timers anew. Requests that F forwards start no timer.
//  2. Let p be the last ping L sent before it committed n−1. It was sent no earlier than tick/2 + δ before that commit, and
//     n−1 was sent to F before it was committed: p was sent after Q − tick/2 − δ.
//  3. From L to F everything is in order, so F answered p before it could answer n−1, and n was sent only after that.
//     From F to L everything is in order too, and n arrived, for it was committed: F's answer to p arrived before it.
//  4. That answer, or one before it, reported every activity of the session until F answered p, hence until Q − tick/2 − δ:
//     request i with r_i ≤ Q − tick/2 − δ among them. L heard of it after it was sent, that is, after s_i, and did not expire
//     the session for T thereafter.
//  5. If another leader came, it gave every session the full T when it started, after L had committed n.
//
// The handshake counts as well. The one that makes the session is a transaction during which the leader starts the timer,
// so the session lives until T after it was sent. One that re-attaches it makes L start the timer anew before F answers it
// (the leader, not F, validates the session); whether L still was the leader is known once a heartbeat of the same
// connection has been committed, for F closes its connections before it follows another leader. A new connection starts
// the list of heartbeats anew, since F may have died with its reports; the deadline that was reached stands.
//
// What it assumes: clocks run within 1 % of the true rate; the leader pings at least every tick/2 + δ while it commits, with
// the configured tick or a shorter one; all servers grant a session the same timeout (one that is told of a shorter one when
// it comes back ends at once, but the answer may be late); ZooKeeper drops no report. (Its servers put a session into the next report with
// two steps that do not exclude each other; an activity that hits the few nanoseconds between them is not reported. The next
// one, a heartbeat later, is.) Servers behind other observers report once more on the way, which adds tick/2 + δ.
//
// # One session's heartbeats for several
//
// Sessions that are connected to one server need one session's transactions between them. The first of them is the prober: it sends
// heartbeats twice as often as it would for itself, which ask for the places of all (see below). The heartbeats of the others are plain reads,
// and each of them is alive until
//
//	T × (1 − 2ρ) − margin + max { s_i : r_i ≤ Q − tick/2 − δ and s_i > h }
//
// where s_i and r_i are when its own request i was sent and answered, Q is when the prober's second newest answered heartbeat was sent, and h
// when the handshake of the prober's present connection was answered. Steps 1 to 5 above say so for every session at F, whichever session
// sent n−1 and n: reports name all sessions that were active at F, and the answer to p is on its way to L before n is. What must be certain
// is that the server which processed request i is the F of the prober's connection, the same process and not only the same address, and that
// it followed the same leader all the while:
//
//   - Both sessions are on the connections on which they were made. A server puts its id into the first byte of the number of each session
//     that it makes; both numbers name the same one, the ensemble lists it, and both connections end at the same IP address and port.
//   - F began to serve before h, and closes its connections when it loses its leader, the prober's too. A process that was at the address
//     before F had ended by then, so that it answered nothing that was sent after h.
//
// What it assumes besides: no two processes of one ensemble answer at one IP address and port with one id at the same time. That would take a
// proxy, and an operator who starts a server anew while the one before still runs, cut off from the others. Where servers are reached through a
// proxy only, they are not to be followed (Config.FollowServers), and each session proves itself, as it does once servers of two ids have been
// seen behind one address and port. And no other process uses the session: a plain read would not find out.
//
// A session proves itself, too, whose server the ensemble does not list, that has come back over another connection, or that another process
// has opened. So does one whose prober does not keep it as valid as heartbeats of its own would. If the prober's heartbeat is not answered for
// half an interval, the next session takes its place; if that one's is not either, contact is late for all, and each sends a heartbeat of its
// own. Sessions that do not bear to lose contact for two intervals do so at once.
//
// # Sessions that sleep
//
// A session on which nothing has stood for a timeout (Config.Sleep) sleeps: its heartbeats are plain reads, for which its server reports it to
// the leader, and which prove nothing. It is not valid then: nothing is granted that rests on it. It is not over either, for there is nothing
// that its end would give to others. So it is not lost while contact is missing, and its end, if the ensemble has expired it, is learned from
// the ensemble.
//
// A follower that is cut off answers plain reads for up to syncLimit ticks, while the leader expires the sessions that have sent them. So a
// session that sleeps goes by the transactions of all sessions of the sidecar at its server: the reader's heartbeats, as a rule. Once none was
// committed there for a while (Config.unheard), one of those that sleep there sends a transaction. If it is not answered soon, each of them
// does, and leaves for another server as any session does whose heartbeat is not answered. A session that has come back over another connection
// goes by others only where one server is known to answer. No validity rests on this, and it wakes no session.
//
// A caller that asks how long it may count on the session gets an answer all the same (AssuredFor), and does not wake it. If nothing is made
// on the session by then, there is nothing that it counts on in vain. If something is, that is not granted before the session is valid
// again. And the session is not valid again before its deadline is as late as each answer that a caller got. So no caller counts on what it
// has for longer than it is proved. While the session is being woken, no answer names a later instant than those before. Else it would have
// to be proved for longer and longer.
//
// A caller that makes something on the session, or asks for a proof (Prove), wakes it: two transactions are sent, one after the other, and it
// is valid again when the formula says so, for as long as that takes again at least; the reads are among the requests i. Steps 1 to 5 above do
// not ask for what was proved before: transaction n was committed, so that the session had not been expired then. What follows from a deadline
// that has passed, that the session is over, takes another form: a place may be made on it before it is valid again. Then it must be valid
// within a lifetime of that, or it is over; so the barrier of a place that has passed (see below) ends a session that wakes as it does any
// other.
//
// With static proof there are no transactions: heartbeats are reads, and a heartbeat answered by r_i ≤ Q − Δ counts, where Q
// is when the newest was sent and Δ bounds how long a server can go on answering after its reports have ceased to arrive:
// syncLimit ticks until the leader gives it up, as many for what is still under way to it, as many until it notices the
// silence, and one tick between.
//
// # When no program can have asked for a place's end
//
// A program that breaks a hold or replaces a member writes that into the node of its place, waits until T and a tick are over, and then
// removes the place, whether or not the sidecar of the place has heard of it. The reader that would show what was written may see nothing for
// longer than that, while the session is proved all the time. So a session is valid, and not over, at most until
//
//	T × (1 − 2ρ) − margin + min { b_p : p a place of the session's on which a caller counts }
//
// where b_p is the barrier of a place: when the newest heartbeat was sent that has found the place's data to be of the version which the
// owner of the place has seen, that is, has read and found nothing in that ends the place. Heartbeats check the places, all of them in as
// many requests as it takes; whose session's heartbeats these are does not matter. The request that makes a place is its first barrier. Where
// that was not answered, the look is that has found the place as it was made: validities that callers were told meanwhile, which no barrier
// bounded, end no later. A place is covered while it waits, so that a grant waits for nothing. Its barrier stands, whatever the reader shows
// to others, until its owner has seen newer data.
//
// Why: let the end of place p be asked for in version v+1 of its data, committed at c, and left standing there.
//
//  1. Versions only grow, and v+1 and what is written on top of it are never seen, for they say that the place must end. So
//     no heartbeat moves the barrier but by a check for v or an older version.
//  2. The leader carries out the check as it puts the transaction into its order, in which v+1 comes later: the heartbeat was
//     committed before c, and sent before that, whichever connection it and its answer took. So b_p < c. A node that was made
//     by a request sent at b_p was not there before, so that c is later there too.
//  3. Each validity that a caller is told ends T × (1 − 2ρ) − margin after b_p at most, and so less than that after c:
//     less than T, by both clocks, while the program that asked waits for T and a tick after c.
//
// What it takes: the program that asks counts from when its request was answered, and anew when the request does not stand there any more. For
// that, it looks once more, behind all that has been committed, and removes only that version of the data that it has seen. A deadline
// that has passed stays so, even if the place that it came from goes: the session is over. A heartbeat that finds newer data
// moves nothing, and the place is not asked for again until its owner has seen them; if the reader does not show them until the
// deadline, the session is lost. That takes a program that has written there, and a reader in trouble: a reader in trouble alone
// costs nothing. Versions begin anew with a node of the same name, which only members can have: between the mark on one and the
// making of another there are, unless an operator says otherwise, T and a tick, after which the session is over.
//
// A program may write so often that each heartbeat finds newer data than were seen. Then the owner reads after the reader has caught
// up, and that is the barrier: a transaction behind which the reader shows all that had been committed when it was sent, so that
// an end which it does not show was committed later.
//
// With static proof heartbeats are reads, of one place each. What one shows is what was committed Δ before it was sent, or
// newer: a server that has heard of nothing for so long does not answer any more. So its barrier is Δ earlier.
//
// # A place that is granted as it is made
//
// Sessions ask by requests of our own on the library's connection; see own_request.go. Only the reader's reads are the library's.
// So heartbeats do not wait for the library, nor does it carry them over to another connection. Requests of all goroutines are noted and
// written in one order, so that each answer is known by its place in the order. Each is answered once: by the server, or, when the
// connection ends, with that its outcome is not known. What was written in part ends the connection. The library does not see the answers,
// so that the next handshake says for it what they have shown.
//
// Behind the request that makes a place, in the same write, its queue is listed. The server answers the list after it has applied the
// making, for what comes over one connection is done in order; so the list shows the place, and every place made before it that stands
// still. If no place is ahead of it then, none ever is: the lock is its own until its node goes. That takes its session's end, its
// owner's hand, or another program's, which waits for T and a tick before it removes what it has marked. The making counts as the barrier of
// the place; so a caller that holds the lock by these two answers alone, and is told of a validity, holds it for no longer than that. Its node
// is read and watched soon after the grant, for the caller to hear what is asked of it. The fencing token is the czxid in the making's answer.
//
// # Sessions
//
// The library's connection is not a session: after an expiry it silently opens another and replays what was queued. A Session
// here fences the connection first (its dialer and its Write refuse), then tells all that stand on it, then closes it. Reads and
// watches go through one reader for all sessions of a sidecar; it may be late, which delays a grant, but cannot cause one: a
// list that shows a place shows every earlier place that still existed. Nor can what it remembers of deletions cause one: it is only
// the event NodeDeleted of a watch whose read had found the node (an answer that there is no such node may mean "not yet"), and only
// of names that hold a uuid, which no later node has. So it is a deletion that was committed, and stays one. It is forgotten with the
// connection that told it, and when there are too many; then the queue is listed.
//
// A session that could not be proved in time is over here, and lives on at the ensemble: for a timeout after the last packet of it,
// which may have been under way for long. So it is closed there as soon as contact is back, by a connection that comes back to it
// and says nothing else. Not before its owner calls Close, for others may be granted what it owned in that moment: streams that
// told of it have ended by then. Not before the ensemble could have expired it by itself, T after what proved it: then closing it
// gives away nothing that callers that were told of a validity could not have lost by then, whatever their clocks. And in few tries,
// in each of which handshake and closing are one write: the handshake alone would renew what it is to end.
//
// A session that was closed without contact is closed there in the same way, but as soon as contact is back: the owner that calls Close
// gives up what the session owns, with or without contact.
//
// A session that is closed may be kept for the next lease; see PooledSession. What a validity rests on is not touched by that: the proof
// goes on, of the same session over the same connection. What the lease before was granted is gone from the ensemble by then, for its
// deletion was answered, and nothing that it asked for can come to be there later: a request that was answered is not carried out again,
// and one that was not bars the session.
package zookeeper
