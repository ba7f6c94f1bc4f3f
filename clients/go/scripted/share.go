package scripted

import (
	assignmentv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/assignment/v1"
)

// A Share is what stands for a call of AssignmentService.Join on a lease's stream.
type Share struct {
	stream[assignmentv1.JoinResponse]
	Request *assignmentv1.JoinRequest
}

// NextShare is the next call of AssignmentService.Join.
func (s *Server) NextShare() *Share { s.t.Helper(); return next(s.t, s.shares, "Join of a set") }

// Admit makes the caller a member.
func (j *Share) Admit(incarnation int64) {
	j.t.Helper()
	j.Send(&assignmentv1.JoinResponse{Event: &assignmentv1.JoinResponse_Joined{Joined: &assignmentv1.Joined{Incarnation: incarnation}}})
}

// Assign tells the member all its items.
func (j *Share) Assign(epoch int64, items ...string) {
	j.t.Helper()
	j.Send(&assignmentv1.JoinResponse{Event: &assignmentv1.JoinResponse_Assigned{
		Assigned: &assignmentv1.Assigned{Epoch: epoch, Items: items, Members: 1, Total: int32(len(items))},
	}})
}

type assignmentServer struct {
	assignmentv1.UnimplementedAssignmentServiceServer
}
