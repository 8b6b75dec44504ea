#pragma once
#define PORT 5
