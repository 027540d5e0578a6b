package wire

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/raftlease/raftlease/lease"
	pb "github.com/raftlease/raftlease/transport/rpc/raftleasev1"
)

// sentinels are the errors that carry nothing but their kind, the more telling
// first: a call that was cut off while its outcome was unknown is unknown.
var sentinels = []struct {
	err  error
	code pb.ErrorCode
}{
	{lease.ErrNotFound, pb.ErrorCode_ERROR_CODE_NOT_FOUND},
	{lease.ErrUnknownOutcome, pb.ErrorCode_ERROR_CODE_UNKNOWN_OUTCOME},
	{lease.ErrClosed, pb.ErrorCode_ERROR_CODE_CLOSED},
	{lease.ErrUnavailable, pb.ErrorCode_ERROR_CODE_UNAVAILABLE},
	{context.Canceled, pb.ErrorCode_ERROR_CODE_UNAVAILABLE},
	{context.DeadlineExceeded, pb.ErrorCode_ERROR_CODE_UNAVAILABLE},
}

// Detail describes err, which is not nil, for the wire. An error that is none of
// package lease is ErrUnknownOutcome: nothing is known about what was done.
func Detail(err error) *pb.ErrorDetail {
	var (
		held    *lease.HeldError
		lost    *lease.LostError
		invalid *lease.InvalidError
	)
	switch {
	case errors.As(err, &held):
		return &pb.ErrorDetail{
			Code: pb.ErrorCode_ERROR_CODE_HELD, Name: held.Name, Owner: held.Owner, Token: held.Token,
			Remaining: durationpb.New(held.Remaining),
		}
	case errors.As(err, &lost):
		return &pb.ErrorDetail{
			Code: pb.ErrorCode_ERROR_CODE_LOST, Name: lost.Name, Owner: lost.Owner, Token: lost.Token,
			Reason: string(lost.Reason), NewOwner: lost.NewOwner, NewToken: lost.NewToken,
		}
	case errors.As(err, &invalid):
		d := &pb.ErrorDetail{Code: pb.ErrorCode_ERROR_CODE_INVALID}
		for _, f := range invalid.Faults {
			d.Faults = append(d.Faults, &pb.Fault{Field: f.Field, Value: f.Value, Allowed: f.Allowed})
		}
		return d
	}
	for _, s := range sentinels {
		if errors.Is(err, s.err) {
			return &pb.ErrorDetail{Code: s.code}
		}
	}
	return &pb.ErrorDetail{Code: pb.ErrorCode_ERROR_CODE_UNKNOWN_OUTCOME}
}

// Err is the error that d describes, nil for nil. A code of a later version is
// ErrUnknownOutcome.
func Err(d *pb.ErrorDetail) error {
	if d == nil {
		return nil
	}
	switch d.Code {
	case pb.ErrorCode_ERROR_CODE_HELD:
		return &lease.HeldError{Name: d.Name, Owner: d.Owner, Token: d.Token, Remaining: d.Remaining.AsDuration()}
	case pb.ErrorCode_ERROR_CODE_LOST:
		return &lease.LostError{
			Name: d.Name, Owner: d.Owner, Token: d.Token, Reason: lease.Reason(d.Reason),
			NewOwner: d.NewOwner, NewToken: d.NewToken,
		}
	case pb.ErrorCode_ERROR_CODE_INVALID:
		e := &lease.InvalidError{}
		for _, f := range d.Faults {
			e.Faults = append(e.Faults, lease.Fault{Field: f.Field, Value: f.Value, Allowed: f.Allowed})
		}
		return e
	}
	for _, s := range sentinels {
		if d.Code == s.code {
			return s.err
		}
	}
	return fmt.Errorf("%w: error code %d of a later version", lease.ErrUnknownOutcome, d.Code)
}
