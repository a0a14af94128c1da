"""Operations counted from shapes: equal to torch's own counter on public architectures, to hand calculation elsewhere."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.training import loops

import leadline
from leadline.analysis.devicerates import cpu_name, peak_rate, rates_file
from leadline.analysis.flops import FlopColumns, flop_columns, flops_of
from leadline.report.training import summarize
from leadline.report.training.markdown import render

torch = pytest.importorskip("torch", reason="its operators are counted")
EAGER = {"attn_implementation": "eager"}


def counted(work: Callable[[], object], folder: Path) -> tuple[float, FlopColumns]:
    path = folder / "a.leadline"
    with leadline.profile(path, shapes=True):
        work()
    columns = flop_columns(leadline.open(str(path)).tree)
    return float((columns.per_call * columns.calls).sum()), columns


def language(kind: str, cls: str, **config):
    def make():
        import transformers as t

        built = getattr(t, f"{kind}Config")(
            vocab_size=96, bos_token_id=1, eos_token_id=2, pad_token_id=0, decoder_start_token_id=0, **config
        )
        model = getattr(t, cls)._from_config(built, **(EAGER if kind != "Mamba" else {}))
        ids = torch.randint(3, 90, (2, 16))
        return lambda: model(input_ids=ids, labels=ids).loss.backward()

    return make


def image(kind: str, size: int = 32, eager: bool = True, **config):
    def make():
        import transformers as t

        model = getattr(t, f"{kind}ForImageClassification")._from_config(
            getattr(t, f"{kind}Config")(**config), **(EAGER if eager else {})
        )
        pixels, labels = torch.randn(2, 3, size, size), torch.tensor([0, 1])
        return lambda: model(pixel_values=pixels, labels=labels).loss.backward()

    return make


def whisper():
    import transformers as t

    config = t.WhisperConfig(
        vocab_size=96, d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=64, decoder_ffn_dim=64, max_source_positions=50, num_mel_bins=8,
        pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
    )  # fmt: skip
    model = t.WhisperForConditionalGeneration._from_config(config, **EAGER)
    sound, ids = torch.randn(2, 8, 100), torch.randint(3, 90, (2, 8))
    return lambda: model(input_features=sound, labels=ids).loss.backward()


def clip():
    import transformers as t

    towers = {"text_config": {"vocab_size": 96, "max_position_embeddings": 32, **SMALL}}
    towers["vision_config"] = {"image_size": 32, "patch_size": 8, **SMALL}
    model = t.CLIPModel._from_config(t.CLIPConfig(projection_dim=32, **towers), **EAGER)
    ids, pixels = torch.randint(3, 90, (2, 16)), torch.randn(2, 3, 32, 32)
    return lambda: model(input_ids=ids, pixel_values=pixels, return_loss=True).loss.backward()


def wav2vec2():
    import transformers as t

    config = t.Wav2Vec2Config(
        vocab_size=32, conv_dim=(16, 16), conv_stride=(5, 2), conv_kernel=(10, 3), num_feat_extract_layers=2,
        num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=2, **SMALL,
    )  # fmt: skip
    model = t.Wav2Vec2ForCTC._from_config(config, **EAGER).eval()  # training leaves out layers at random
    sound, labels = torch.randn(2, 2000), torch.randint(1, 30, (2, 5))
    return lambda: model(input_values=sound, labels=labels).loss.backward()


SMALL = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
MODELS = {
    "GPT-2": language("GPT2", "GPT2LMHeadModel", n_embd=32, n_layer=2, n_head=2, n_positions=32),
    "Llama": language("Llama", "LlamaForCausalLM", num_key_value_heads=2, **SMALL),
    "Mixtral": language("Mixtral", "MixtralForCausalLM", num_key_value_heads=2, num_local_experts=4, **SMALL),
    "BERT": language("Bert", "BertForMaskedLM", **SMALL),
    "T5": language("T5", "T5ForConditionalGeneration", d_model=32, d_kv=16, d_ff=64, num_layers=2, num_heads=2),
    "Mamba": language("Mamba", "MambaForCausalLM", hidden_size=32, num_hidden_layers=1, state_size=4),
    "ViT": image("ViT", image_size=32, patch_size=8, **SMALL),
    "Swin": image("Swin", image_size=32, patch_size=4, embed_dim=16, depths=[1, 1], num_heads=[2, 2], window_size=4),
    "ResNet": image("ResNet", eager=False, embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1]),
    "ConvNeXt": image("ConvNext", eager=False, hidden_sizes=[8, 16], depths=[1, 1], num_stages=2),
    "MobileNetV2": image("MobileNetV2", size=64, eager=False, depth_multiplier=0.25),
    "Whisper": whisper,
    "CLIP": clip,
    "Wav2Vec2": wav2vec2,
}
DIFFERS = {"Mixtral", "Mamba", "ConvNeXt", "MobileNetV2", "Wav2Vec2"}


def corrections() -> dict[object, Callable[..., int]]:
    """What torch's counter leaves out (grouped products) and counts several times (the weight gradient of a convolution
    with groups, once per group)."""

    def grouped(left, right, *rest, out_shape=None, **named) -> int:
        return 2 * torch.Size(left).numel() * right[-1]

    def backward(gradient, image, weight, bias, stride, padding, dilation, transposed, out, groups, mask, **named):
        places = image if transposed else gradient  # where the filter is laid once
        half = 2 * places[0] * torch.Size(places[2:]).numel() * torch.Size(weight).numel()
        return half * (mask[0] + mask[1])

    return {torch.ops.aten._grouped_mm: grouped, torch.ops.aten.convolution_backward: backward}


def soon(name: str) -> bool:
    """Whether it is tested with each change; all of them take a minute."""
    return name in ("Llama", "Mixtral", "ResNet", "ConvNeXt")


@pytest.mark.parametrize(
    "name", [name if soon(name) else pytest.param(name, marks=pytest.mark.slow) for name in MODELS]
)
def test_public_architectures_equal_torchs_counter(name: str, tmp_path: Path) -> None:
    loops.transformers("its architectures are counted")
    from torch.utils.flop_counter import FlopCounterMode

    torch.manual_seed(0)
    work = MODELS[name]()
    with FlopCounterMode(display=False) as plain:
        work()
    with FlopCounterMode(display=False, custom_mapping=corrections()) as corrected:
        work()
    ours, columns = counted(work, tmp_path)
    assert columns.uncounted == ()
    assert ours == corrected.get_total_flops() > 0
    assert (ours == plain.get_total_flops()) == (name not in DIFFERS)


def test_fused_attention_is_counted_on_a_cpu(tmp_path: Path) -> None:
    sizes = {"query": (2, 4, 8, 16), "key": (2, 4, 24, 16), "value": (2, 4, 24, 16)}
    tensors = [torch.randn(size, requires_grad=True) for size in sizes.values()]
    ours, _ = counted(lambda: torch.nn.functional.scaled_dot_product_attention(*tensors).sum().backward(), tmp_path)
    product = 2 * 2 * 4 * 8 * 24 * 16
    assert ours == 2 * product + 5 * product


@pytest.mark.parametrize(
    ("layer", "forward"),
    [
        (torch.nn.Conv1d(4, 8, 3, stride=2, padding=1), 2 * 2 * 8 * 8 * 4 * 3),
        (torch.nn.Conv2d(4, 8, 3, groups=2, bias=False), 2 * 2 * 14 * 14 * 8 * 2 * 9),
        (torch.nn.Conv2d(4, 8, 3, dilation=2, padding="same"), 2 * 2 * 16 * 16 * 8 * 4 * 9),
        (torch.nn.Conv3d(4, 8, (1, 3, 3)), 2 * 2 * 16 * 14 * 14 * 8 * 4 * 9),
        (torch.nn.ConvTranspose2d(4, 8, 4, stride=2), 2 * 2 * 16 * 16 * 4 * 8 * 16),
    ],
)
def test_convolutions_by_hand(layer, forward: int, tmp_path: Path) -> None:
    image = torch.randn(2, 4, *[16] * (layer.weight.dim() - 2))
    assert counted(lambda: layer(image), tmp_path)[0] == forward
    assert counted(lambda: layer(image).sum().backward(), tmp_path)[0] == 2 * forward, "nobody asked for the input's"
    image.requires_grad_()
    assert counted(lambda: layer(image).sum().backward(), tmp_path)[0] == 3 * forward


@pytest.mark.parametrize(
    ("kind", "gates", "named"), [("LSTM", 4, {}), ("GRU", 3, {}), ("LSTM", 4, {"num_layers": 2, "bidirectional": True})]
)
def test_recurrent_layers_by_hand(kind: str, gates: int, named: dict[str, int], tmp_path: Path) -> None:
    width, hidden, batch, length = 6, 8, 3, 5
    layer = getattr(torch.nn, kind)(width, hidden, batch_first=True, **named)
    sound = torch.randn(batch, length, width, requires_grad=True)
    directions, layers = 1 + int(bool(named)), named.get("num_layers", 1)
    inputs = [width] + [hidden * directions] * (layers - 1)
    forward = 2 * batch * length * directions * sum(gates * hidden * (one + hidden) for one in inputs)
    ours, columns = counted(lambda: layer(sound)[0].sum().backward(), tmp_path)
    assert columns.uncounted == ()
    # the state before the first position asks for no gradient, which products of a position can be spared by
    assert 3 * forward * (1 - 1 / length) <= ours <= 3 * forward


def test_recurrent_layers_of_cudnn_by_hand() -> None:
    sizes = [None, None, None, 0, None, None]
    forward = {"shapes": [[5, 3, 6]], "arguments": [*sizes, 2, 8, 0, 2, False, None, True, True]}
    hand = 2 * 15 * 2 * 4 * 8 * ((6 + 8) + (16 + 8))
    assert flops_of("aten::_cudnn_rnn", forward) == (hand, hand)
    backward = {"shapes": [[5, 3, 6]], "arguments": [*[None] * 10, 2, 8, 0, 2, False, None, True, True]}
    assert flops_of("aten::_cudnn_rnn_backward", backward) == (2 * hand, 2 * hand)
    assert flops_of("aten::_cudnn_rnn", {"shapes": [[5, 3, 6]]}) == (0, 0)


def test_what_has_no_formula_and_what_shapes_do_not_tell() -> None:
    assert flops_of("aten::add", {"shapes": [[4, 4]]}) is None
    assert flops_of("aten::convolution", {"shapes": [[2, 4, 16, 16], [8, 4, 3, 3]]}) == (0, 0)
    assert flops_of("aten::_flash_attention_forward", {"shapes": [[32, 4, 8]] * 3}) == (0, 0), "how many sequences?"
    assert flops_of("aten::mm", {"shapes": "rubbish"}) == (0, 0)


def test_autocast_counts_in_the_precision_that_ran(tmp_path: Path) -> None:
    layer, x = torch.nn.Linear(8, 4), torch.randn(2, 8)

    def work() -> None:
        with torch.autocast("cpu", torch.bfloat16):
            layer(x)

    ours, columns = counted(work, tmp_path)
    assert ours == 2 * 2 * 8 * 4
    assert {name for name, count in zip(columns.precision, columns.per_call, strict=True) if count} == {"bf16"}


WIDTH, LAYERS, VOCABULARY, BATCH, LENGTH = 64, 2, 256, 4, 32


def gpt_run(folder: Path, checkpointing: bool | None = None):
    """The bundled GPT in a loop with evaluation in between; `checkpointing`: use_reentrant, None for none."""
    from torch.utils.checkpoint import checkpoint

    from leadline.demo.gpt import GPT, GPTConfig

    torch.manual_seed(0)
    model = GPT(GPTConfig(vocabulary=VOCABULARY, context=LENGTH, layers=LAYERS, heads=2, width=WIDTH, dropout=0.0))
    for block in model.transformer.h if checkpointing is not None else ():
        plain = block.forward
        block.forward = lambda x, plain=plain: checkpoint(plain, x, use_reentrant=checkpointing)
    profiler = leadline.build_profiler(
        enable=True, start_step=2, end_step=4, shapes=True, trace_dir=str(folder), rank=0
    )
    profiler.describe_model(model, layers=LAYERS, attention_width=WIDTH)
    profiler.start(0)
    for step in range(5):
        tokens = torch.randint(0, VOCABULARY, (BATCH, LENGTH))
        profiler.begin_step(step)
        model.loss(tokens, tokens).backward()
        profiler.step(step)
        with torch.no_grad():
            model(tokens)
    return summarize(profiler.stop())


def test_a_gpt_by_hand_and_with_a_known_peak(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("LEADLINE_RATES", str(tmp_path / "rates.json"))
    profile_host = leadline.open(str(gpt_file(tmp_path))).meta["host"]
    rates_file().write_text(json.dumps({"rates": {cpu_name(profile_host): {"fp32": 1e12}}}))
    found = gpt_run(tmp_path / "run").efficiency
    tokens = BATCH * LENGTH
    matrices = LAYERS * 12 * WIDTH**2 + VOCABULARY * WIDTH
    by_hand = 6 * matrices * tokens + LAYERS * (4 + 10) * WIDTH * LENGTH * tokens  # attention's scores are made twice
    assert found.flops == by_hand
    assert (found.scope, found.recomputed, found.precision) == ("recorded steps", 0, "fp32")
    assert found.mfu == pytest.approx(by_hand / (found.step_ns / 1e9) / 1e12)
    assert found.estimate.tokens == tokens
    assert found.flops == pytest.approx(found.estimate.flops, rel=0.04)
    assert {rate.name for rate in found.classes} == {"matrix product", "attention"}


def gpt_file(folder: Path) -> Path:
    with leadline.profile(folder / "host.leadline"):
        pass
    return folder / "host.leadline"


@pytest.mark.parametrize("reentrant", [True, False])
def test_recomputation_is_apart(reentrant: bool, tmp_path: Path) -> None:
    plain, again = gpt_run(tmp_path / "a").efficiency, gpt_run(tmp_path / "b", reentrant).efficiency
    last = 0 if reentrant else 2 * 4 * WIDTH**2  # nothing of what it makes is needed, so torch leaves before it
    blocks = LAYERS * (2 * 12 * WIDTH**2 + 4 * WIDTH * LENGTH - last) * BATCH * LENGTH
    assert again.recomputed == blocks
    assert again.flops - again.recomputed == plain.flops


@pytest.mark.parametrize("last", ["linear", "convolution", "attention", "relu"])
def test_what_recomputation_leaves_has_not_worked(last: str, tmp_path: Path) -> None:
    from torch.utils.checkpoint import _StopRecomputationError, checkpoint
    from torch.utils.flop_counter import FlopCounterMode

    linear, convolution = torch.nn.Linear(8, 8), torch.nn.Conv1d(4, 4, 3, padding=1)
    ends = {
        "linear": linear,
        "convolution": convolution,
        "attention": lambda x: torch.softmax(x @ x.transpose(1, 2), -1) @ x,
        "relu": torch.relu,
    }

    def block(x: torch.Tensor) -> torch.Tensor:
        return ends[last](torch.tanh(linear(x)))

    def work() -> None:
        for _ in range(3):
            x = torch.randn(2, 4, 8, requires_grad=True)
            checkpoint(block, checkpoint(block, x, use_reentrant=False), use_reentrant=False).sum().backward()

    with FlopCounterMode(display=False) as theirs:
        work()
    ours, columns = counted(work, tmp_path)
    assert ours == theirs.get_total_flops() > 0
    assert (columns.ended.size > 0) == (last != "relu")
    assert "__init__" not in vars(_StopRecomputationError), "torch is as it was"


def test_a_frozen_model_and_experts_in_the_second_opinion() -> None:
    from leadline.capture.training.model_facts import model_facts

    transformers = loops.transformers("its experts are counted")
    config = transformers.MixtralConfig(
        vocab_size=96, num_key_value_heads=2, num_local_experts=4, num_experts_per_tok=2, **SMALL
    )
    model = transformers.MixtralForCausalLM(config)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_("lm_head" in name)
    facts = model_facts(model)
    everything = sum(parameter.numel() for parameter in model.parameters())
    experts = sum(parameter.numel() for name, parameter in model.named_parameters() if ".experts." in name)
    assert facts["parameters"] == everything - 96 * 32 - experts // 2
    assert facts["trainable"] == 96 * 32
    assert (facts["layers"], facts["attention_width"]) == (2, 32)
    assert model_facts(torch.nn.Linear(4, 4))["parameters"] == 20


def test_nobody_knows_a_peak(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("LEADLINE_RATES", str(tmp_path / "none.json"))
    assert peak_rate("NVIDIA H200", "bf16").flops == pytest.approx(989.4e12)
    assert peak_rate("NVIDIA GeForce RTX 4080 SUPER", "bf16").flops == 0, "another model"
    assert peak_rate("Tesla V100-SXM2-32GB", "bf16").flops == 0, "no such unit"
    summary = gpt_run(tmp_path / "run")
    assert summary.efficiency.mfu is None
    assert "No MFU: the peak of this device in fp32 is unknown" in render(summary)
    (tmp_path / "none.json").write_text("[]")
    assert peak_rate("x", "fp32").flops == 0


def test_doctor_measures_a_peak(tmp_path: Path, monkeypatch) -> None:
    from leadline.cli.peak import measure

    monkeypatch.setenv("LEADLINE_RATES", str(tmp_path / "folder" / "rates.json"))
    text = measure(budget_s=0.01)
    assert "GFLOP/s" in text
    assert "memory" in text
    import os
    import platform

    assert peak_rate(cpu_name({"hostname": platform.node(), "cpus": os.cpu_count()}), "fp32").flops > 1e9


def test_shapes_make_no_two_rows_of_one_operator(tmp_path: Path) -> None:
    summary = gpt_run(tmp_path)
    keys = [(hot.name, hot.place, hot.module) for hot in summary.hot]
    assert len(keys) == len(set(keys)) > 5
