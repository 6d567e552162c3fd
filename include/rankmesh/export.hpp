// Symbol visibility: everything is hidden but what carries RANKMESH_API.
#pragma once

#define RANKMESH_API __attribute__((visibility("default")))
