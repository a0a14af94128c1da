"""Scenarios about memory, layers and data loading, with answers worked out by hand."""

from __future__ import annotations

import json

import numpy as np
import pytest

from leadline.whatif.draws import technique
from leadline.whatif.kinds import Phase, TaskKind
from leadline.whatif.scenarios.loader import queue_pace_ns

US = 1000
F, B = Phase.FORWARD, Phase.BACKWARD


def conv_net(step):
    """Two convolutions with an activation between: forward 100, 20, 100; backward 100, 20, 100."""
    step.kernel("sm90_xmma_fprop", 100, F, layer="Conv2d_0")
    step.kernel("vectorized_elementwise_kernel", 20, F, layer="ReLU_0")
    step.kernel("sm90_xmma_fprop", 100, F, layer="Conv2d_1")
    step.kernel("sm90_xmma_dgrad", 100, B, layer="Conv2d_1")
    step.kernel("vectorized_elementwise_kernel", 20, B, layer="ReLU_0")
    step.kernel("sm90_xmma_dgrad", 100, B, layer="Conv2d_0")
    return step.graph()


def test_vdnn_hidden_copies_cost_nothing(step, ask):
    """20 us out after Conv2d_0, 20 us back during the backward pass of ReLU_0: both hide."""
    found = ask(conv_net(step), "vdnn", bandwidth="1GB/s", activation_bytes="20kB")
    assert found.predicted_ns == 440 * US
    assert found.applied_to == {"copies": 2}


def test_vdnn_late_prefetch_stalls_backward(step, ask):
    """The copy out lasts from 100 to 500, the copy back until 900; the last backward kernel follows."""
    found = ask(conv_net(step), "vdnn", bandwidth="1GB/s", activation_bytes="400kB")
    assert found.predicted_ns == 1000 * US


def test_vdnn_prefetch_starts_lookahead_layers_before(step, ask):
    """100 us each way. One layer ahead the copy back starts with the backward pass of ReLU_0 at 320 and ends at 420;
    two layers ahead it starts at 220 and is there in time."""
    graph = conv_net(step)
    shared = {"bandwidth": "1GB/s", "activation_bytes": "100kB"}
    assert ask(graph, "vdnn", lookahead="1", **shared).predicted_ns == (420 + 100) * US
    assert ask(graph, "vdnn", lookahead="2", **shared).predicted_ns == 440 * US


def test_gist_adds_two_kernels(step, ask):
    """Encoding and decoding ReLU_0 take as long as its own kernel."""
    found = ask(conv_net(step), "gist")
    assert found.predicted_ns == (440 + 20 + 20) * US
    assert found.applied_to == {"kernels": 2}


def test_activation_checkpointing_recomputes_forward(step, ask):
    found = ask(conv_net(step), "activation_checkpointing", segments="1")
    assert found.predicted_ns == (440 + 220) * US
    some = ask(conv_net(step), "activation_checkpointing", layers="ReLU")
    assert some.applied_to == {"recomputed segments": 1}


def test_activation_checkpointing_of_one_layer(new_step, ask):
    found = ask(conv_net(new_step()), "activation_checkpointing", layers="ReLU_0")
    assert found.predicted_ns == (440 + 20) * US


def test_metaflow_substitution(step, ask):
    """Conv2d_0 and ReLU_0 become one layer like Conv2d_0, 10 % longer."""
    spec = {
        "substitutions": [
            {"remove": ["Conv2d_0", "ReLU_0"], "insert": [{"name": "fused", "like": "Conv2d_0", "scale": 1.1}]}
        ]
    }
    found = ask(conv_net(step), "metaflow", spec=json.dumps(spec))
    assert found.predicted_ns == (110 + 100 + 100 + 110) * US
    assert found.applied_to == {"removed kernels": 4, "inserted kernels": 2}


def test_metaflow_explicit_times_from_a_file(step, ask, tmp_path):
    path = tmp_path / "spec.json"
    path.write_text(
        json.dumps({"substitutions": [{"remove": "ReLU_.*", "insert": [{"name": "new", "forward_us": 5}]}]})
    )
    assert ask(conv_net(step), "metaflow", spec=str(path)).predicted_ns == (440 - 20 - 20 + 5) * US


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("absent.json", "cannot be read"),
        ("{}", "not as expected"),
        ('{"substitutions": [{"remove": "x", "insert": [{"name": "y"}]}]}', "needs `like`"),
        ('{"substitutions": [{"remove": "nothing"}]}', "no layer of the trace matches"),
        ('{"substitutions": [{"remove": "("}]}', "not a regular expression"),
    ],
)
def test_metaflow_bad_specification(step, ask, spec, sentence):
    with pytest.raises(ValueError, match=sentence):
        ask(conv_net(step), "metaflow", spec=spec)


def loading(step, load_us=3000, work_us=2000):
    step.cpu(
        "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", load_us, Phase.DATA_LOADING, kind=TaskKind.DATA
    )
    step.kernel("sgemm", work_us, cpu_us=0)
    step.sync()
    return step.graph()


def test_data_loading_never_waited_for(step, ask):
    found = ask(loading(step), "data_loading", workers="inf")
    assert found.predicted_ns == 2000 * US
    assert found.speedup == 2.5


def test_data_loading_worker_hides_loading(step, ask):
    """One worker delivers every 4 ms, so a step takes 4 ms, not 6 and not 2; two leave the step's own time."""
    graph = loading(step, load_us=4000)
    one = ask(graph, "data_loading", workers="1")
    scaling = technique("loader_scaling", larger_is_faster=True).expected
    assert one.predicted_ns == pytest.approx(4000 * US, rel=1e-6)
    two = ask(graph, "data_loading", workers="2")
    fetch = technique("loader_fetch_ns", larger_is_faster=False).expected
    fetch += 2 * technique("loader_fetch_tensor_ns", larger_is_faster=False).expected
    assert 4000 * US / (2 * scaling) < 2000 * US + fetch, "two workers keep up"
    assert two.predicted_ns == pytest.approx(2000 * US + fetch, rel=1e-6)


def test_data_loading_workers_share_cores_with_the_step(step, ask):
    """4.5 ms of loading and 2 ms of work on two cores take 3.25 ms at least, however many workers there are; cores with
    more to do than there are of them lose what workers always lose."""
    step.cpu("enumerate(DataLoader)#x", 4500, Phase.DATA_LOADING, kind=TaskKind.DATA)
    step.cpu("aten::mm", 2000)
    graph = step.graph()
    fetch = technique("loader_fetch_ns", larger_is_faster=False).expected
    fetch += 2 * technique("loader_fetch_tensor_ns", larger_is_faster=False).expected
    scaling = technique("loader_scaling", larger_is_faster=True).expected
    four = ask(graph, "data_loading", workers="4", cores="2")
    assert four.predicted_ns == pytest.approx((4500 * US + 2000 * US + fetch) / (2 * scaling), rel=1e-6)
    assert ask(graph, "data_loading", workers="4", cores="64").predicted_ns == ask(
        graph, "data_loading", workers="4"
    ).predicted_ns  # fmt: skip


def test_data_loading_more_workers_are_never_slower(step, ask):
    graph = loading(step, load_us=9000)
    times = [ask(graph, "data_loading", workers=count).predicted_ns for count in ("1", "2", "3", "8", "inf")]
    assert times == sorted(times, reverse=True)


def test_data_loading_with_workers_needs_their_number(step, ask):
    """With two workers a step of 5 ms means a batch every 5 ms, 10 ms each; five workers deliver one every 2 ms."""
    step.cpu(
        "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 3000, Phase.DATA_LOADING, kind=TaskKind.DATA
    )
    step.kernel("sgemm", 1000, cpu_us=0)
    step.sync()
    graph = step.graph()
    doubtful = ask(graph, "data_loading", workers="4")
    assert any("current_workers" in warning for warning in doubtful.warnings)
    sure = ask(graph, "data_loading", workers="4", current_workers="2")
    assert not sure.warnings
    scaling = technique("loader_scaling", larger_is_faster=True).expected
    assert sure.predicted_ns == pytest.approx(2 * 4000 * US / (4 * scaling), rel=1e-3)


def test_batch_size_scales_loading(step, ask):
    found = ask(loading(step), "batch_size", factor="2")
    grown = 2 ** technique("memory_bound_batch", larger_is_faster=False).expected
    assert found.predicted_ns == pytest.approx((6000 + 2000 * grown) * US, rel=1e-5)


def test_batch_size_where_workers_set_the_pace(step, ask):
    """Workers deliver a batch every 4 ms and would need 8 ms for one of twice the size."""
    step.cpu(
        "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 3000, Phase.DATA_LOADING, kind=TaskKind.DATA
    )
    step.kernel("sgemm", 1000, cpu_us=0)
    step.sync()
    found = ask(step.graph(), "batch_size", factor="2")
    assert found.predicted_ns == pytest.approx(8000 * US, rel=1e-6)
    assert found.speedup == pytest.approx(1.0)


def test_a_loader_of_steady_batches_keeps_its_mean_pace():
    assert queue_pace_ns(np.array([300.0]), np.array([100.0]), 4) == pytest.approx(100.0)
    assert queue_pace_ns(np.array([800.0]), np.array([100.0]), 4) == pytest.approx(200.0, rel=0.01)


def test_batches_that_vary_make_the_step_wait_though_workers_are_enough_in_the_mean():
    """One batch in ten takes ten times as long: two workers need 95 of 100 in the mean, and the loop waits all the same."""
    uneven = np.array([100.0] * 9 + [1000.0])
    assert uneven.mean() / 2 < 100
    pace = queue_pace_ns(uneven, np.array([100.0]), 2)
    assert 120 < pace < 190
    assert queue_pace_ns(uneven, np.array([100.0]), 16) < pace
