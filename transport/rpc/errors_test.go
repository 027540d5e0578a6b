package rpc

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	pb "github.com/raftlease/raftlease/transport/rpc/raftleasev1"
)

// G6: what kind of no it was survives the way.
func TestDetail(t *testing.T) {
	var d *pb.ErrorDetail
	s := serve(t, &node{acquire: func(context.Context, *pb.AcquireRequest) (*pb.AcquireResponse, error) {
		return nil, Error(d, "some text")
	}})
	c := clients(t, dialTCP).Lease(s.addr)
	// As proto/raftlease/v1/lease.proto says.
	for code, want := range map[pb.ErrorCode]connect.Code{
		pb.ErrorCode_ERROR_CODE_UNSPECIFIED:     connect.CodeUnknown,
		pb.ErrorCode_ERROR_CODE_INVALID:         connect.CodeInvalidArgument,
		pb.ErrorCode_ERROR_CODE_HELD:            connect.CodeFailedPrecondition,
		pb.ErrorCode_ERROR_CODE_LOST:            connect.CodeAborted,
		pb.ErrorCode_ERROR_CODE_NOT_FOUND:       connect.CodeNotFound,
		pb.ErrorCode_ERROR_CODE_UNAVAILABLE:     connect.CodeUnavailable,
		pb.ErrorCode_ERROR_CODE_UNKNOWN_OUTCOME: connect.CodeUnknown,
		pb.ErrorCode_ERROR_CODE_CLOSED:          connect.CodeUnavailable,
	} {
		t.Run(code.String(), func(t *testing.T) {
			d = &pb.ErrorDetail{
				Code: code, Name: "report", Owner: "b", Token: 1<<53 - 1, Remaining: durationpb.New(1500 * time.Millisecond),
				Faults: []*pb.Fault{{Field: "ttl", Value: "0s", Allowed: "1s or more"}},
			}
			_, err := c.Acquire(within(t), &pb.AcquireRequest{})
			if got := connect.CodeOf(err); got != want {
				t.Errorf("got Connect code %v, want %v", got, want)
			}
			if got := Detail(fmt.Errorf("wrapped: %w", err)); !proto.Equal(got, d) {
				t.Errorf("got detail %v, want %v", got, d)
			}
			if ce := new(connect.Error); !errors.As(err, &ce) || ce.Message() != "some text" {
				t.Errorf("got %v, want some text", err)
			}
		})
	}
}

func TestDetail_Absent(t *testing.T) {
	s := serve(t, &node{})
	_, unimplemented := clients(t, dialTCP).Lease(s.addr).Get(within(t), &pb.GetRequest{})
	for name, err := range map[string]error{
		"no error":                 nil,
		"an error of another kind": errors.New("x"),
		"an error without detail":  unimplemented,
		"a detail of another kind": func() error {
			e := connect.NewError(connect.CodeAborted, errors.New("x"))
			d, err := connect.NewErrorDetail(&pb.Fault{})
			if err != nil {
				t.Fatal(err)
			}
			e.AddDetail(d)
			return e
		}(),
	} {
		if got := Detail(err); got != nil {
			t.Errorf("%s: got %v, want nil", name, got)
		}
	}
}
