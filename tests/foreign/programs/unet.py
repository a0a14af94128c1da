"""A diffusion U-Net of diffusers: training on noise with an average of the weights; sampling through its pipeline."""

import sys

import torch
from diffusers import DDPMPipeline, DDPMScheduler, UNet2DModel
from diffusers.training_utils import EMAModel


def model() -> UNet2DModel:
    return UNet2DModel(
        sample_size=16, in_channels=3, out_channels=3, layers_per_block=1, block_out_channels=(16, 32),
        norm_num_groups=8, down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    )  # fmt: skip


def train() -> None:
    net, noise_of = model().train(), DDPMScheduler(num_train_timesteps=100)
    average = EMAModel(net.parameters())
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)
    for _ in range(6):
        clean, noise, when = torch.randn(4, 3, 16, 16), torch.randn(4, 3, 16, 16), torch.randint(0, 100, (4,))
        guess = net(noise_of.add_noise(clean, noise, when), when).sample
        torch.nn.functional.mse_loss(guess, noise).backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        average.step(net.parameters())


def infer() -> None:
    pipeline = DDPMPipeline(unet=model(), scheduler=DDPMScheduler(num_train_timesteps=100))
    pipeline.set_progress_bar_config(disable=True)
    pipeline(batch_size=2, num_inference_steps=6, output_type="np")


if __name__ == "__main__":
    {"train": train, "infer": infer}[sys.argv[1]]()
