"""A peer for tools/peers/nemo-gym.ts: servers of the real nemo-gym package, in one process without Ray.

Usage: python nemo_gym_peer.py <base URL of the policy, ending in /v1>

Prints one JSON object {"name": "http://..."} when all of them answer: two resources servers of its examples (`counter`,
`follow_ups`), three agents (`agent` and `vllm_agent` with tools, `gymnasium_agent`), each with a model server before the
policy (openai_model, vllm_model with return_token_id_information), and a head server. Ends when stdin does. Needs
Python 3.13 and nemo-gym; tried with 0.4.0.
"""

import asyncio
import json
import socket
import sys

import uvicorn
from nemo_gym.server_utils import (
    BaseServerConfig,
    GlobalAIOHTTPAsyncClientConfig,
    HeadServer,
    ServerClient,
    set_global_aiohttp_client,
)
from omegaconf import OmegaConf
from resources_servers.example_multi_turn_gymnasium.app import ExampleMultiTurnEnv
from resources_servers.example_session_state_mgmt.app import StatefulCounterResourcesServer
from responses_api_agents.gymnasium_agent.app import GymnasiumAgent
from responses_api_agents.simple_agent.app import SimpleAgent
from responses_api_models.openai_model.app import SimpleModelServer
from responses_api_models.vllm_model.app import VLLMModel

policy_url = sys.argv[1]
HOST = "127.0.0.1"


def reference(kind, name):
    return {"type": kind, "name": name}


def agent(resources, model, **more):
    return {
        "resources_server": reference("resources_servers", resources),
        "model_server": reference("responses_api_models", model),
        **more,
    }


SERVERS = {
    "counter": ("resources_servers", StatefulCounterResourcesServer, {"domain": "agent"}),
    "follow_ups": ("resources_servers", ExampleMultiTurnEnv, {"domain": "agent"}),
    "openai_policy": (
        "responses_api_models",
        SimpleModelServer,
        {"openai_base_url": policy_url, "openai_api_key": "none", "openai_model": "policy"},
    ),
    "vllm_policy": (
        "responses_api_models",
        VLLMModel,
        {
            "base_url": policy_url,
            "api_key": "none",
            "model": "policy",
            "return_token_id_information": True,
            "uses_reasoning_parser": False,
        },
    ),
    "agent": ("responses_api_agents", SimpleAgent, agent("counter", "openai_policy")),
    "vllm_agent": ("responses_api_agents", SimpleAgent, agent("counter", "vllm_policy")),
    "gymnasium_agent": ("responses_api_agents", GymnasiumAgent, agent("follow_ups", "openai_policy", max_steps=6)),
}


def listen():
    sock = socket.socket()
    sock.bind((HOST, 0))
    return sock


async def main():
    sockets = {name: listen() for name in [*SERVERS, "head"]}
    ports = {name: sock.getsockname()[1] for name, sock in sockets.items()}
    urls = {name: f"http://{HOST}:{port}" for name, port in ports.items()}
    configs = {
        name: {"host": HOST, "port": ports[name], "entrypoint": "app.py", "name": name, **more}
        for name, (_, _, more) in SERVERS.items()
    }
    known = {name: {SERVERS[name][0]: {"impl": config}} for name, config in configs.items()}
    head = BaseServerConfig(host=HOST, port=ports["head"])
    client = ServerClient(head_server_config=head, global_config_dict=OmegaConf.create(known))
    set_global_aiohttp_client(GlobalAIOHTTPAsyncClientConfig())
    apps = {}
    for name, (_, cls, _) in SERVERS.items():
        server = cls(config=cls.model_fields["config"].annotation(**configs[name]), server_client=client)
        apps[name] = server.setup_webserver()
        server.setup_exception_middleware(apps[name])
    head_server = HeadServer(config=head)
    head_server.set_server_instances([{"name": name, "url": urls[name], "status": "success"} for name in SERVERS])
    apps["head"] = head_server.setup_webserver()
    servers = [
        (uvicorn.Server(uvicorn.Config(app, log_level="warning")), sockets[name]) for name, app in apps.items()
    ]
    running = [asyncio.create_task(server.serve(sockets=[sock])) for server, sock in servers]
    while not all(server.started for server, _ in servers):
        await asyncio.sleep(0.05)
    print(json.dumps(urls), flush=True)
    await asyncio.to_thread(sys.stdin.read)
    for server, _ in servers:
        server.should_exit = True
    await asyncio.gather(*running)


asyncio.run(main())
