"""A peer of the whole loop for bench/step.ts: TRL's GRPOTrainer on the CPU in float32.

Usage: python trl_peer.py <checkpoint directory with a tokenizer> <tasks.json> <threads>

tasks.json: {"prompts": [text, ...], "samples": n, "new": tokens of an answer}. The reward of an answer is the share of
even ids in it. Every line read lets one step pass (all prompts once: sampling, reward, advantages, update) and is
answered with {"seconds", "reward"}: the mean reward of the step.

Measured with trl 1.16.0, torch 2.15.0 and transformers 5.23.0.
"""

import json
import sys
import tempfile
import time

import datasets
import torch
import transformers
import trl


def even_share(completion_ids, **_):
    return [sum(token % 2 == 0 for token in ids) / len(ids) for ids in completion_ids]


class StepByStep(transformers.TrainerCallback):
    """Waits for a line before each step and answers after it."""

    def __init__(self, answers):
        self.answers = answers

    def on_step_begin(self, args, state, control, **_):
        if not sys.stdin.readline():
            sys.exit(0)
        self.start = time.perf_counter()

    def on_step_end(self, args, state, control, **_):
        self.seconds = time.perf_counter() - self.start

    def on_log(self, args, state, control, logs=None, **_):
        if "reward" in logs:
            print(json.dumps({"seconds": self.seconds, "reward": logs["reward"]}), file=self.answers, flush=True)


def main():
    # Progress of the trainer goes to standard output, which is for answers.
    answers, sys.stdout = sys.stdout, sys.stderr
    directory, tasks, threads = sys.argv[1], json.load(open(sys.argv[2])), int(sys.argv[3])
    torch.set_num_threads(threads)
    rows = len(tasks["prompts"]) * tasks["samples"]
    with tempfile.TemporaryDirectory() as output:
        config = trl.GRPOConfig(
            output_dir=output,
            use_cpu=True,
            bf16=False,
            # Recomputing activations would only cost time here.
            gradient_checkpointing=False,
            per_device_train_batch_size=rows,
            num_generations=tasks["samples"],
            max_completion_length=tasks["new"],
            generation_kwargs={"min_new_tokens": tasks["new"]},
            loss_type="grpo",
            beta=0.0,
            learning_rate=1e-4,
            lr_scheduler_type="constant",
            max_steps=1_000_000,
            logging_steps=1,
            logging_strategy="steps",
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            dataloader_pin_memory=False,
        )
        trainer = trl.GRPOTrainer(
            model=transformers.AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32),
            reward_funcs=even_share,
            args=config,
            train_dataset=datasets.Dataset.from_list([{"prompt": prompt} for prompt in tasks["prompts"]]),
            processing_class=transformers.PreTrainedTokenizerFast.from_pretrained(directory, padding_side="left"),
            callbacks=[StepByStep(answers)],
        )
        trainer.remove_callback(transformers.PrinterCallback)
        trainer.train()


main()
