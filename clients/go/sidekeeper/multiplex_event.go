package sidekeeper

import leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"

// hear takes in an event of a request, if there is one still.
func (r *request) hear(event *leasev1.Event) {
	if r != nil {
		granted, permits, joined := event.GetAcquire().GetGranted(), event.GetAcquirePermits().GetGranted(), event.GetJoin().GetJoined()
		elected, all, entered := event.GetCampaign().GetElected(), event.GetAcquireAll().GetGranted(), event.GetEnter().GetEntered()
		switch {
		case granted != nil:
			r.begun, r.holdID, r.token = true, granted.GetHoldId(), granted.GetFencingToken()
		case all != nil: // made by one transaction, so that one token is that of each
			r.begun, r.holdID, r.token = true, all.GetHoldId(), all.GetLocks()[0].GetFencingToken()
		case permits != nil:
			r.begun, r.holdID, r.token = true, permits.GetHoldId(), permits.GetToken()
		case elected != nil:
			r.begun, r.holdID, r.token = true, elected.GetHoldId(), elected.GetTicket().GetFencingToken()
		case entered != nil:
			r.begun, r.holdID, r.token = true, entered.GetHoldId(), entered.GetToken()
		case event.GetBegin().GetBegun() != nil:
			r.begun, r.holdID, r.token = true, event.GetBegin().GetBegun().GetHoldId(), event.GetBegin().GetBegun().GetFencingToken()
		case event.GetWork().GetFire() != nil:
			r.begun, r.holdID, r.token = true, event.GetWork().GetFire().GetHoldId(), event.GetWork().GetFire().GetFencingToken()
		case joined != nil:
			r.begun, r.token = true, joined.GetIncarnation()
		case event.GetShare().GetJoined() != nil:
			r.begun, r.token = true, event.GetShare().GetJoined().GetIncarnation()
		}
		r.add(func() { r.handle(event) })
	}
}
