package server_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/durationpb"

	agreementv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/agreement/v1"
	assignmentv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/assignment/v1"
	barrierv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/barrier/v1"
	configv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/config/v1"
	electionv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/election/v1"
	fencingv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/fencing/v1"
	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
	oncev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/once/v1"
	queuev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/queue/v1"
	schedulev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/schedule/v1"
	semaphorev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/semaphore/v1"
	sequencev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/sequence/v1"
	"github.com/sidekeeper/sidekeeper/internal/server"
	"github.com/sidekeeper/sidekeeper/service"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

// A policyScene is a sidecar with a policy, and callers of every kind: on Unix sockets, and over TCP with certificates.
type policyScene struct {
	t         *testing.T
	folder    string
	authority *testAuthority
	services  *service.Services
	server    *server.Server
	metrics   *server.Metrics
	book      *logbook
	record    *logbook // the audit
	opened    chan *standin.Session
	callers   map[string]*grpc.ClientConn // by identity; `operator` is on the operators' socket
}

func newPolicyScene(t *testing.T, policy string) *policyScene {
	t.Helper()
	return newPolicySceneOf(t, policy, 100*time.Millisecond)
}

// newPolicySceneOf starts a sidecar whose leases last for 20 ticks.
func newPolicySceneOf(t *testing.T, policy string, tick time.Duration, change ...func(*server.Options)) *policyScene {
	t.Helper()
	memory := standin.New(standin.Options{Tick: tick})
	t.Cleanup(memory.Close)
	folder, err := os.MkdirTemp("", "policy")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	s := &policyScene{
		t: t, folder: folder, metrics: server.NewMetrics(), book: &logbook{}, record: &logbook{},
		opened: make(chan *standin.Session, 10000),
	}
	s.write(policy)
	authority := newAuthority(t)
	s.authority = authority
	files := server.TLSFiles{folder + "/cert", folder + "/key", folder + "/ca"}
	authority.writeServer(files)
	authority.writeClientCA(files)
	ensemble := &memoryEnsemble{Reader: memory.NewReader(), memory: memory, opened: s.opened}
	s.services = service.New(service.Options{
		SessionTimeout: 20 * tick, TickTime: tick, Log: s.book.Logger(), Audit: s.record.Logger(),
	}, ensemble)
	options := server.Options{
		Listen: []string{
			"unix://" + folder + "/callers", "unix://" + folder + "/app?identity=app", "unix://" + folder + "/web?identity=web", "127.0.0.1:0",
		},
		SocketMode: 0o660, OperatorListen: "unix://" + folder + "/operators", TLS: files, Policy: s.policy(),
		HTTPListen:    "127.0.0.1:0",
		KeepaliveTime: time.Minute, KeepaliveTimeout: time.Minute, MaxStreams: 1024, SilenceTimeout: 5 * time.Second,
		Log: s.book.Logger(), Audit: s.record.Logger(), Metrics: s.metrics,
	}
	for _, change := range change {
		change(&options)
	}
	s.server, err = server.New(options, s.services, ensemble)
	must(t, err)
	s.run()
	plain := withTransport(insecure.NewCredentials())
	s.callers = map[string]*grpc.ClientConn{
		"uid:" + uid(): s.dial(s.server.Addresses()[0], plain), "socket:app": s.dial(s.server.Addresses()[1], plain),
		"socket:web": s.dial(s.server.Addresses()[2], plain), "operator": s.dial("unix://"+folder+"/operators", plain),
	}
	for identity, template := range map[string]*x509.Certificate{
		"spiffe://test/ns/web/shop":     spiffe(t, "spiffe://test/ns/web/shop"),
		"spiffe://test/ns/website/shop": spiffe(t, "spiffe://test/ns/website/shop"),
		"dns:batch.test":                {DNSNames: []string{"batch.test"}},
	} {
		s.callers[identity] = s.dial(s.server.Addresses()[3], withTransport(authority.client(authority, template)))
	}
	return s
}

func spiffe(t *testing.T, id string) *x509.Certificate {
	uri, err := url.Parse(id)
	must(t, err)
	return &x509.Certificate{URIs: []*url.URL{uri}}
}

func (s *policyScene) policy() string { return s.folder + "/policy.yaml" }

func (s *policyScene) write(policy string) {
	s.t.Helper()
	must(s.t, os.WriteFile(s.policy()+".new", []byte(policy), 0o600))
	must(s.t, os.Rename(s.policy()+".new", s.policy()))
}

func (s *policyScene) run() {
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.server.Serve(ctx) }()
	stop := sync.OnceValue(func() error { cancel(); return <-served })
	s.t.Cleanup(func() { must(s.t, stop()) })
}

func (s *policyScene) dial(address string, option grpc.DialOption) *grpc.ClientConn {
	s.t.Helper()
	connection, err := grpc.NewClient(address, option)
	must(s.t, err)
	s.t.Cleanup(func() { _ = connection.Close() })
	return connection
}

// A memoryEnsemble opens sessions in memory and keeps them for the test.
type memoryEnsemble struct {
	*standin.Reader

	memory *standin.Ensemble
	opened chan *standin.Session
}

func (e *memoryEnsemble) Open(_ context.Context, timeout time.Duration) (service.Session, error) {
	session := e.memory.OpenSession(timeout)
	e.opened <- session
	return session, nil
}

// call makes a call of any kind and returns what came of it: of a stream, what its first message was.
func (s *policyScene) call(identity string, asked asking, name string) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patient)
	defer cancel()
	method := descriptorOf(s.t, asked.method)
	reply := dynamicpb.NewMessage(method.Output())
	if !method.IsStreamingServer() {
		return outcome(s.callers[identity].Invoke(ctx, asked.method, asked.about(name), reply))
	}
	stream, err := s.callers[identity].NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, asked.method)
	must(s.t, err)
	must(s.t, errors.Join(stream.SendMsg(asked.about(name)), stream.CloseSend()))
	return outcome(stream.RecvMsg(reply))
}

func descriptorOf(t *testing.T, method string) protoreflect.MethodDescriptor {
	t.Helper()
	name := strings.ReplaceAll(strings.TrimPrefix(method, "/"), "/", ".")
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
	must(t, err)
	return found.(protoreflect.MethodDescriptor)
}

// methods are all that the sidecar serves of its own.
func (s *policyScene) methods() []string { return server.MethodsOf(s.server) }

// An asking is a way of using a method.
type asking struct {
	method   string
	action   string // as a policy says it
	operator bool
	nameless bool // it is about nothing that has a name
	whole    bool // it is about everything
	ends     bool // it ends what was allowed, and no policy refuses it
	about    func(name string) proto.Message
}

// askings are all uses of all methods.
func askings() []asking {
	all := slices.Concat(leaseAskings(), lockAskings(), semaphoreAskings(), queueAskings(), barrierAskings(), agreementAskings(), onceAskings(),
		scheduleAskings(), assignmentAskings(),
		electionAskings(), sequenceAskings(), groupAskings(), configAskings())
	for i := range all {
		of := strings.Replace(all[i].method, "/Multiplex", "/Open", 1) // which is judged as that
		all[i].action = strings.TrimSuffix(strings.TrimPrefix(of, "/")+":"+all[i].action, ":")
	}
	return all
}

// about makes a request of a name.
func about[M proto.Message](method string, request func(name string) M) asking {
	return asking{method: method, about: func(name string) proto.Message { return request(name) }}
}

// with is a use of a method that nobody is named in.
func with(method string, request proto.Message) asking {
	return asking{method: method, nameless: true, about: func(string) proto.Message { return request }}
}

func asOperator(use string, asked asking) asking {
	asked.action, asked.operator = use, true
	return asked
}

var noID, noTime = strings.Repeat("0", 32), durationpb.New(0)

func leaseAskings() []asking {
	return []asking{
		with(leasev1.LeaseService_Open_FullMethodName, &leasev1.OpenRequest{}),
		with(leasev1.LeaseService_Multiplex_FullMethodName, &leasev1.MultiplexRequest{
			Request: &leasev1.MultiplexRequest_Open{Open: &leasev1.OpenRequest{}},
		}),
		with(leasev1.LeaseService_Check_FullMethodName, &leasev1.CheckRequest{LeaseId: noID}),
		with(leasev1.LeaseService_Close_FullMethodName, &leasev1.CloseRequest{LeaseId: noID}),
		{method: leasev1.LeaseService_List_FullMethodName, whole: true, about: func(string) proto.Message { return &leasev1.ListRequest{} }},
	}
}

func lockAskings() []asking {
	return []asking{
		about(lockv1.LockService_Acquire_FullMethodName, func(n string) *lockv1.AcquireRequest {
			return &lockv1.AcquireRequest{Name: n, WaitTimeout: noTime}
		}),
		about(lockv1.LockService_AcquireAll_FullMethodName, func(n string) *lockv1.AcquireAllRequest {
			return &lockv1.AcquireAllRequest{Locks: []*lockv1.WantedLock{{Name: n}}, WaitTimeout: noTime}
		}),
		with(lockv1.LockService_Check_FullMethodName, &lockv1.CheckRequest{HoldIds: []string{noID}}),
		with(lockv1.LockService_Release_FullMethodName, &lockv1.ReleaseRequest{HoldId: noID}),
		about(lockv1.LockService_Claim_FullMethodName, func(n string) *lockv1.ClaimRequest { return &lockv1.ClaimRequest{Name: n} }),
		with(lockv1.LockService_Extend_FullMethodName, &lockv1.ExtendRequest{ClaimId: noID}),
		about(lockv1.LockService_Revoke_FullMethodName, func(n string) *lockv1.RevokeRequest { return &lockv1.RevokeRequest{Name: n} }),
		asOperator("grace", about(lockv1.LockService_Revoke_FullMethodName, func(n string) *lockv1.RevokeRequest {
			return &lockv1.RevokeRequest{Name: n, Grace: noTime}
		})),
		asOperator("", about(lockv1.LockService_Break_FullMethodName, func(n string) *lockv1.BreakRequest {
			return &lockv1.BreakRequest{Name: n, FencingToken: 1 << 60, Reason: "stuck", ForceAfter: noTime}
		})),
		about(lockv1.LockService_Get_FullMethodName, func(n string) *lockv1.GetRequest { return &lockv1.GetRequest{Name: n} }),
		{method: lockv1.LockService_Explain_FullMethodName, whole: true, about: func(string) proto.Message {
			return &lockv1.ExplainRequest{Name: "orders"}
		}},
		about(lockv1.LockService_List_FullMethodName, func(n string) *lockv1.ListRequest { return &lockv1.ListRequest{Prefix: n} }),
		about(lockv1.LockService_Watch_FullMethodName, func(n string) *lockv1.WatchRequest { return &lockv1.WatchRequest{Name: n} }),
	}
}

func queueAskings() []asking {
	return []asking{
		about(queuev1.QueueService_Put_FullMethodName, func(n string) *queuev1.PutRequest { return &queuev1.PutRequest{Name: n} }),
		about(queuev1.QueueService_Take_FullMethodName, func(n string) *queuev1.TakeRequest {
			return &queuev1.TakeRequest{Name: n, WaitTimeout: noTime}
		}),
		with(queuev1.QueueService_Check_FullMethodName, &queuev1.CheckRequest{HoldIds: []string{noID}}),
		with(queuev1.QueueService_Done_FullMethodName, &queuev1.DoneRequest{HoldId: noID}),
		about(queuev1.QueueService_List_FullMethodName, func(n string) *queuev1.ListRequest { return &queuev1.ListRequest{Prefix: n} }),
	}
}

func onceAskings() []asking {
	finish := with(oncev1.OnceService_Finish_FullMethodName, &oncev1.FinishRequest{HoldId: noID, Outcome: oncev1.Outcome_OUTCOME_FAILED})
	finish.ends = true
	return []asking{
		about(oncev1.OnceService_Begin_FullMethodName, func(n string) *oncev1.BeginRequest {
			return &oncev1.BeginRequest{Name: n, Key: "k", WaitTimeout: noTime}
		}),
		finish,
		about(oncev1.OnceService_Get_FullMethodName, func(n string) *oncev1.GetRequest { return &oncev1.GetRequest{Name: n, Key: "k"} }),
		about(oncev1.OnceService_List_FullMethodName, func(n string) *oncev1.ListRequest { return &oncev1.ListRequest{Name: n} }),
		asOperator("", about(oncev1.OnceService_Forget_FullMethodName, func(n string) *oncev1.ForgetRequest {
			return &oncev1.ForgetRequest{Name: n, Key: "k"}
		})),
	}
}

func assignmentAskings() []asking {
	return []asking{
		about(assignmentv1.AssignmentService_Define_FullMethodName, func(n string) *assignmentv1.DefineRequest {
			return &assignmentv1.DefineRequest{Set: n, Count: 1}
		}),
		about(assignmentv1.AssignmentService_Join_FullMethodName, func(n string) *assignmentv1.JoinRequest {
			return &assignmentv1.JoinRequest{Set: n, Member: "m"}
		}),
		about(assignmentv1.AssignmentService_SetCapacity_FullMethodName, func(n string) *assignmentv1.SetCapacityRequest {
			return &assignmentv1.SetCapacityRequest{Set: n, Member: "m"}
		}),
		about(assignmentv1.AssignmentService_Get_FullMethodName, func(n string) *assignmentv1.GetRequest {
			return &assignmentv1.GetRequest{Set: n}
		}),
		about(assignmentv1.AssignmentService_List_FullMethodName, func(n string) *assignmentv1.ListRequest {
			return &assignmentv1.ListRequest{Prefix: n}
		}),
		about(assignmentv1.AssignmentService_Watch_FullMethodName, func(n string) *assignmentv1.WatchRequest {
			return &assignmentv1.WatchRequest{Set: n}
		}),
		about(assignmentv1.AssignmentService_Delete_FullMethodName, func(n string) *assignmentv1.DeleteRequest {
			return &assignmentv1.DeleteRequest{Set: n}
		}),
	}
}

func scheduleAskings() []asking {
	finished := &schedulev1.FinishRequest{HoldId: noID, Outcome: oncev1.Outcome_OUTCOME_FAILED}
	finish := with(schedulev1.ScheduleService_Finish_FullMethodName, finished)
	finish.ends = true
	return []asking{
		about(schedulev1.ScheduleService_Put_FullMethodName, func(n string) *schedulev1.PutRequest { return &schedulev1.PutRequest{Name: n} }),
		about(schedulev1.ScheduleService_Get_FullMethodName, func(n string) *schedulev1.GetRequest { return &schedulev1.GetRequest{Name: n} }),
		about(schedulev1.ScheduleService_List_FullMethodName, func(n string) *schedulev1.ListRequest { return &schedulev1.ListRequest{Prefix: n} }),
		asOperator("", about(schedulev1.ScheduleService_Delete_FullMethodName, func(n string) *schedulev1.DeleteRequest {
			return &schedulev1.DeleteRequest{Name: n}
		})),
		about(schedulev1.ScheduleService_History_FullMethodName, func(n string) *schedulev1.HistoryRequest {
			return &schedulev1.HistoryRequest{Name: n}
		}),
		about(schedulev1.ScheduleService_Run_FullMethodName, func(n string) *schedulev1.RunRequest {
			return &schedulev1.RunRequest{Name: n, Id: "k"}
		}),
		asOperator("", about(schedulev1.ScheduleService_Reset_FullMethodName, func(n string) *schedulev1.ResetRequest {
			return &schedulev1.ResetRequest{Name: n}
		})),
		about(schedulev1.ScheduleService_Work_FullMethodName, func(n string) *schedulev1.WorkRequest {
			return &schedulev1.WorkRequest{Name: n, WaitTimeout: noTime}
		}),
		finish,
	}
}

func barrierAskings() []asking {
	return []asking{
		about(barrierv1.BarrierService_Set_FullMethodName, func(n string) *barrierv1.SetRequest {
			return &barrierv1.SetRequest{Name: n}
		}),
		about(barrierv1.BarrierService_Remove_FullMethodName, func(n string) *barrierv1.RemoveRequest {
			return &barrierv1.RemoveRequest{Name: n}
		}),
		about(barrierv1.BarrierService_Wait_FullMethodName, func(n string) *barrierv1.WaitRequest {
			return &barrierv1.WaitRequest{Name: n}
		}),
		about(barrierv1.BarrierService_Enter_FullMethodName, func(n string) *barrierv1.EnterRequest {
			return &barrierv1.EnterRequest{Name: n, Size: 1}
		}),
		with(barrierv1.BarrierService_Leave_FullMethodName, &barrierv1.LeaveRequest{HoldId: noID}),
		about(barrierv1.BarrierService_List_FullMethodName, func(n string) *barrierv1.ListRequest { return &barrierv1.ListRequest{Prefix: n} }),
	}
}

func agreementAskings() []asking {
	return []asking{
		about(agreementv1.AgreementService_Begin_FullMethodName, func(n string) *agreementv1.BeginRequest {
			return &agreementv1.BeginRequest{Name: n, Participants: []string{"a"}, Timeout: durationpb.New(time.Minute)}
		}),
		about(agreementv1.AgreementService_Vote_FullMethodName, func(n string) *agreementv1.VoteRequest {
			return &agreementv1.VoteRequest{Name: n, Agreement: noID, Participant: "a"}
		}),
		about(agreementv1.AgreementService_Abort_FullMethodName, func(n string) *agreementv1.AbortRequest {
			return &agreementv1.AbortRequest{Name: n, Agreement: noID}
		}),
		about(agreementv1.AgreementService_Await_FullMethodName, func(n string) *agreementv1.AwaitRequest {
			return &agreementv1.AwaitRequest{Name: n, Agreement: noID}
		}),
		about(agreementv1.AgreementService_Get_FullMethodName, func(n string) *agreementv1.GetRequest {
			return &agreementv1.GetRequest{Name: n}
		}),
		about(agreementv1.AgreementService_Forget_FullMethodName, func(n string) *agreementv1.ForgetRequest {
			return &agreementv1.ForgetRequest{Name: n, Agreement: noID}
		}),
	}
}

func semaphoreAskings() []asking {
	return []asking{
		about(semaphorev1.SemaphoreService_Create_FullMethodName, func(n string) *semaphorev1.CreateRequest {
			return &semaphorev1.CreateRequest{Name: n, Limit: 1}
		}),
		about(semaphorev1.SemaphoreService_Acquire_FullMethodName, func(n string) *semaphorev1.AcquireRequest {
			return &semaphorev1.AcquireRequest{Name: n, WaitTimeout: noTime}
		}),
		with(semaphorev1.SemaphoreService_Check_FullMethodName, &semaphorev1.CheckRequest{HoldIds: []string{noID}}),
		with(semaphorev1.SemaphoreService_Release_FullMethodName, &semaphorev1.ReleaseRequest{HoldId: noID}),
		about(semaphorev1.SemaphoreService_Resize_FullMethodName, func(n string) *semaphorev1.ResizeRequest {
			return &semaphorev1.ResizeRequest{Name: n, Limit: 1}
		}),
		asOperator("grace", about(semaphorev1.SemaphoreService_Resize_FullMethodName, func(n string) *semaphorev1.ResizeRequest {
			return &semaphorev1.ResizeRequest{Name: n, Limit: 1, Grace: noTime}
		})),
		about(semaphorev1.SemaphoreService_Get_FullMethodName, func(n string) *semaphorev1.GetRequest {
			return &semaphorev1.GetRequest{Name: n}
		}),
		about(semaphorev1.SemaphoreService_List_FullMethodName, func(n string) *semaphorev1.ListRequest {
			return &semaphorev1.ListRequest{Prefix: n}
		}),
		about(semaphorev1.SemaphoreService_Watch_FullMethodName, func(n string) *semaphorev1.WatchRequest {
			return &semaphorev1.WatchRequest{Name: n}
		}),
	}
}

func electionAskings() []asking {
	return []asking{
		about(electionv1.ElectionService_Campaign_FullMethodName, func(n string) *electionv1.CampaignRequest {
			return &electionv1.CampaignRequest{Name: n, Candidate: "a", WaitTimeout: noTime}
		}),
		about(electionv1.ElectionService_Proclaim_FullMethodName, func(n string) *electionv1.ProclaimRequest {
			return &electionv1.ProclaimRequest{Ticket: &holdv1.Ticket{Lock: n, FencingToken: 1}}
		}),
		with(electionv1.ElectionService_Resign_FullMethodName, &electionv1.ResignRequest{HoldId: noID}),
		about(electionv1.ElectionService_Transfer_FullMethodName, func(n string) *electionv1.TransferRequest {
			return &electionv1.TransferRequest{Name: n, To: "a"}
		}),
		asOperator("grace", about(electionv1.ElectionService_Transfer_FullMethodName, func(n string) *electionv1.TransferRequest {
			return &electionv1.TransferRequest{Name: n, To: "a", Grace: noTime}
		})),
		about(electionv1.ElectionService_Get_FullMethodName, func(n string) *electionv1.GetRequest { return &electionv1.GetRequest{Name: n} }),
		about(electionv1.ElectionService_Watch_FullMethodName, func(n string) *electionv1.WatchRequest {
			return &electionv1.WatchRequest{Name: n}
		}),
	}
}

func sequenceAskings() []asking {
	return []asking{
		about(fencingv1.FencingService_Verify_FullMethodName, func(n string) *fencingv1.VerifyRequest {
			return &fencingv1.VerifyRequest{Ticket: &holdv1.Ticket{Lock: n, FencingToken: 1}}
		}),
		about(fencingv1.FencingService_Watch_FullMethodName, func(n string) *fencingv1.WatchRequest {
			return &fencingv1.WatchRequest{Locks: []string{n}}
		}),
		about(sequencev1.SequenceService_Create_FullMethodName, func(n string) *sequencev1.CreateRequest {
			return &sequencev1.CreateRequest{Name: n}
		}),
		about(sequencev1.SequenceService_Next_FullMethodName, func(n string) *sequencev1.NextRequest {
			return &sequencev1.NextRequest{Name: n}
		}),
		about(sequencev1.SequenceService_Get_FullMethodName, func(n string) *sequencev1.GetRequest {
			return &sequencev1.GetRequest{Name: n}
		}),
		asOperator("", about(sequencev1.SequenceService_AdvanceTo_FullMethodName, func(n string) *sequencev1.AdvanceToRequest {
			return &sequencev1.AdvanceToRequest{Name: n, LastIssued: proto.Int64(1)}
		})),
		about(sequencev1.SequenceService_Delete_FullMethodName, func(n string) *sequencev1.DeleteRequest {
			return &sequencev1.DeleteRequest{Name: n}
		}),
		about(sequencev1.SequenceService_List_FullMethodName, func(n string) *sequencev1.ListRequest {
			return &sequencev1.ListRequest{Prefix: n}
		}),
	}
}

func groupAskings() []asking {
	return []asking{
		about(membershipv1.MembershipService_Join_FullMethodName, func(n string) *membershipv1.JoinRequest {
			return &membershipv1.JoinRequest{Group: n, Member: "m"}
		}),
		about(membershipv1.MembershipService_Update_FullMethodName, func(n string) *membershipv1.UpdateRequest {
			return &membershipv1.UpdateRequest{Group: n, Member: "m"}
		}),
		about(membershipv1.MembershipService_Get_FullMethodName, func(n string) *membershipv1.GetRequest {
			return &membershipv1.GetRequest{Group: n}
		}),
		about(membershipv1.MembershipService_List_FullMethodName, func(n string) *membershipv1.ListRequest {
			return &membershipv1.ListRequest{Prefix: n}
		}),
		about(membershipv1.MembershipService_Watch_FullMethodName, func(n string) *membershipv1.WatchRequest {
			return &membershipv1.WatchRequest{Group: n}
		}),
		about(membershipv1.MembershipService_Create_FullMethodName, func(n string) *membershipv1.CreateRequest {
			return &membershipv1.CreateRequest{Group: n}
		}),
		about(membershipv1.MembershipService_Delete_FullMethodName, func(n string) *membershipv1.DeleteRequest {
			return &membershipv1.DeleteRequest{Group: n}
		}),
		asOperator("force", about(membershipv1.MembershipService_Delete_FullMethodName, func(n string) *membershipv1.DeleteRequest {
			return &membershipv1.DeleteRequest{Group: n, Force: true, Reason: "moved", ForceAfter: noTime}
		})),
	}
}

func putting(key string) *configv1.PutRequest {
	return &configv1.PutRequest{Key: key, Content: &configv1.PutRequest_Text{Text: "v"}}
}

func configAskings() []asking {
	return []asking{
		about(configv1.ConfigService_Get_FullMethodName, func(n string) *configv1.GetRequest { return &configv1.GetRequest{Key: n} }),
		about(configv1.ConfigService_Put_FullMethodName, putting),
		about(configv1.ConfigService_Delete_FullMethodName, func(n string) *configv1.DeleteRequest { return &configv1.DeleteRequest{Key: n} }),
		asOperator("recursive", about(configv1.ConfigService_Delete_FullMethodName, func(n string) *configv1.DeleteRequest {
			return &configv1.DeleteRequest{Key: n, Recursive: true}
		})),
		about(configv1.ConfigService_List_FullMethodName, func(n string) *configv1.ListRequest { return &configv1.ListRequest{Prefix: n} }),
		about(configv1.ConfigService_Commit_FullMethodName, func(n string) *configv1.CommitRequest {
			return &configv1.CommitRequest{Operations: []*configv1.Operation{{Operation: &configv1.Operation_Put{Put: putting(n)}}}}
		}),
		about(configv1.ConfigService_Watch_FullMethodName, func(n string) *configv1.WatchRequest { return &configv1.WatchRequest{Prefix: n} }),
	}
}

// A grant is what one rule of the test allows.
type grant struct {
	identity string // as a policy says it
	callers  []string
	methods  []string
	actions  map[string]bool // what methods come to, told by hand
	prefixes []string
	covers   []string // which of the test's names prefixes come to, told by hand; nil for all
}

func policyOf(grants []grant) string {
	var text strings.Builder
	text.WriteString("rules:\n")
	for _, g := range grants {
		fmt.Fprintf(&text, "- identities: [%q]\n  methods: [\"%s\"]\n", g.identity, strings.Join(g.methods, `", "`))
		if g.prefixes != nil {
			fmt.Fprintf(&text, "  prefixes: [\"%s\"]\n", strings.Join(g.prefixes, `", "`))
		}
	}
	return text.String()
}

// allowed says what should come of a call, by grants.
func allowed(grants []grant, from string, asked asking, name string) bool {
	return from == "operator" || slices.ContainsFunc(grants, func(g grant) bool {
		return slices.Contains(g.callers, from) && g.actions[asked.action] &&
			(asked.nameless || g.covers == nil || !asked.whole && slices.Contains(g.covers, name))
	})
}

func identitiesOf(s *policyScene) []string { return slices.Sorted(maps.Keys(s.callers)) }
